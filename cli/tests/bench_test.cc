// Every workload in every memory, tiny, and verified; and what a benchmark refuses.
#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

struct Work {
  const char* name;
  const char* arguments;
  bool takes_direct;
};

// Makes parameters readable in a failure.
void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

constexpr Work kWorks[] = {
    {"random_reads", "random-io --size 4M --touches 4000", true},
    {"random_writes", "random-io --size 4M --touches 4000 --write-percent 50", true},
    {"zipf", "random-io --size 4M --touches 4000 --distribution zipf:0.9", true},
    {"once", "random-io --size 4M --touches 500 --distribution once --write-percent 100", true},
    {"processes", "random-io --size 4M --touches 4000 --processes 2 --write-percent 20", true},
    {"large_pages", "random-io --size 4M --touches 500 --page 64k --write-percent 50", true},
    {"scan", "scan --size 4M --passes 2", true},
    {"warm_scan", "scan --size 4M --warm", true},
    {"backward", "scan --size 4M --backward", true},
    {"strides", "scan --size 4M --stride 3", true},
    {"sort", "sort --size 4M", false},
    {"bfs", "bfs --scale 12", false},
    {"external_bfs", "bfs --scale 12 --fully-external", false},
    {"asynchronous_bfs", "bfs --scale 12 --asynchronous", false},
    {"external_asynchronous_bfs", "bfs --scale 12 --asynchronous --fully-external", false},
    {"components", "components --scale 12", false},
    {"external_components", "components --scale 12 --fully-external", false},
    {"pagerank", "pagerank --scale 12", false},
    {"external_pagerank", "pagerank --scale 12 --passes 4 --fully-external", false},
    {"stream", "stream --size 4M --passes 3", false},
    {"jacobi", "jacobi --size 4M --passes 2", false},
    {"lookups_in_a_map", "map-lookup --size 4M --touches 2000", false},
    {"lookups_in_a_hash", "map-lookup --size 4M --touches 2000 --structure hash", false},
    {"images", "images --size 4M --touches 100", false},
    {"kmers_in_a_hash", "kmers --size 4M --reads 300", false},
    {"kmers_in_two_levels", "kmers --size 4M --reads 300 --index two-level", false},
    {"ycsb_a", "ycsb --mix A --size 4M --touches 300", false},
    {"ycsb_b", "ycsb --size 4M --touches 300 --latency on", false},
    {"ycsb_c", "ycsb --mix C --size 4M --touches 300", false},
    {"ycsb_d", "ycsb --mix D --size 4M --touches 300", false},
    {"ycsb_e", "ycsb --mix E --size 4M --touches 20", false},
    {"ycsb_f", "ycsb --mix F --size 4M --touches 300 --distribution uniform", false},
    {"matrices", "matmul --size 2M", false},
    {"matrices_in_tiles", "matmul --size 2M --order columns --tile 64", false},
    {"keys", "is --size 4M", false},
    {"keys_of_a_class", "is --class S --passes 3", false},
    {"gradients", "cg --size 4M --passes 1", false},
    {"gradients_of_a_class", "cg --class S --passes 2", false},
    {"waves", "ft --size 4M --passes 2", false},
    {"lookups_in_a_vector", "map-lookup --size 4M --touches 2000 --structure vector", false},
};

class Bench : public CommandTest {
 protected:
  Outcome bench(const std::string& arguments) const {
    return run("bench " + arguments + " --dir " + dir());
  }
};

class EveryWork : public Bench,
                  public testing::WithParamInterface<std::tuple<Work, const char*>> {};

TEST_P(EveryWork, IsVerified) {
  const auto& [work, memory] = GetParam();
  const std::string name = memory;
  if (name == "direct" && !work.takes_direct) GTEST_SKIP() << "this work needs a mapping";
  const Outcome outcome =
      bench(std::string(work.arguments) + " --budget 2M --threads 2 --json " + "--memory " + name);
  if (name == "direct" && outcome.err.find("O_DIRECT") != std::string::npos)
    GTEST_SKIP() << outcome.err;
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto lines = outcome.lines();
  ASSERT_EQ(lines.size(), 1U);
  const auto& line = lines.front();
  ASSERT_TRUE(line.is_object()) << outcome.out;
  EXPECT_EQ(line["memory"], name);
  EXPECT_EQ(line["checked"], true);
  EXPECT_GT(line["rate"].as<double>().value(), 0);
  for (const char* field :
       {"workload", "store", "device", "data_bytes", "budget_bytes", "threads", "page_bytes",
        "seconds", "unit", "p50_us", "p99_us", "peak_bytes", "fills", "read_bytes", "written_bytes",
        "limited", "read_ahead_kb", "major_faults", "minor_faults"})
    EXPECT_TRUE(line.contains(field)) << field;
}

INSTANTIATE_TEST_SUITE_P(All, EveryWork,
                         testing::Combine(testing::ValuesIn(kWorks),
                                          testing::Values("dram", "mmap", "mmap-random",
                                                          "mmap-dontneed", "direct", "outcore")),
                         [](const auto& tested) {
                           std::string name = std::string(std::get<0>(tested.param).name) + "_" +
                                              std::get<1>(tested.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Three passes in a quarter of the memory: all pages come in once, and twice again.
TEST_F(Bench, ReuseIsToldOfTheTouchesThatMiss) {
  const Outcome outcome = outcome_of("OUTCORE_FETCH=page OUTCORE_READAHEAD=0 " + command_path() +
                                     " bench scan --size 8M --budget 2M --passes 3 --threads 1 "
                                     "--policy fifo --memory dram,outcore "
                                     "--reuse --json --dir " +
                                     dir());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto lines = outcome.lines();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_FALSE(lines[0].contains("reuse"));
  const auto& reuse = lines[1]["reuse"];
  ASSERT_EQ(reuse.value("lost_events", uint64_t{99}), 0U) << reuse;
  ASSERT_EQ(reuse.value("sampled_one_in", uint64_t{0}), 1U) << reuse;
  EXPECT_EQ(reuse.value("first", uint64_t{0}), 2048U);
  EXPECT_EQ(reuse["again"].size(), 12U);  // 2047 pages are between
  EXPECT_EQ(reuse["again"][size_t{11}], 4096U);
  EXPECT_GT(reuse.value("sequential", 0.0), 0.9);
}

// On the file system of the data; where it cannot hold swap, that is told, and nothing is left.
TEST_F(Bench, SwapIsSwitchedOnForTheRunOnly) {
  const Outcome outcome =
      bench("map-lookup --size 64M --budget 32M --touches 2000 --memory swap --json");
  std::ifstream swaps("/proc/swaps");
  const std::string in_force((std::istreambuf_iterator<char>(swaps)), {});
  EXPECT_EQ(in_force.find(dir()), std::string::npos) << in_force;
  for (const auto& entry : std::filesystem::directory_iterator(dir()))
    EXPECT_EQ(entry.path().filename().string().find("outcore-bench-swap"), std::string::npos);
  if (outcome.status != 0) {
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    GTEST_SKIP() << outcome.err;
  }
  EXPECT_EQ(outcome.lines().front()["checked"], true);
}

TEST_F(Bench, AnUnknownStructureIsRefusedWithThoseThereAre) {
  const Outcome outcome = bench("map-lookup --structure tree --memory dram");
  EXPECT_NE(outcome.status, 0);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("map, hash, vector"), std::string::npos) << outcome.err;
}

TEST_F(Bench, MemoriesRunInTurns) {
  const Outcome outcome = bench("scan --size 1M --memory dram,mmap --repeat 2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::vector<std::string> order;
  for (const auto& line : outcome.lines()) order.push_back(line.value("memory", ""));
  EXPECT_EQ(order, (std::vector<std::string>{"dram", "mmap", "dram", "mmap"}));
}

TEST_F(Bench, AReportIsAFigureOfEachWork) {
  const std::string runs = path("runs.json"), out = path("figures");
  std::ofstream file(runs);
  for (const char* work : {"scan --size 1M --threads 1", "scan --size 1M --threads 2 --backward",
                           "sort --size 1M --threads 2"}) {
    const Outcome outcome = bench(std::string(work) + " --memory dram,mmap --repeat 2 --json");
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    file << outcome.out;
  }
  file.close();
  const Outcome outcome = run("bench report " + runs + " --out " + out);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* name : {"scan.png", "sort.png"}) {
    std::ifstream figure(out + "/" + name, std::ios::binary);
    std::string signature(8, ' ');
    figure.read(signature.data(), 8);
    EXPECT_EQ(signature, "\x89PNG\r\n\x1a\n") << name;
    EXPECT_NE(outcome.out.find(name), std::string::npos) << outcome.out;
  }
}

TEST_F(Bench, AReportOfNothingIsOneLine) {
  std::ofstream(path("empty.json")) << "";
  std::ofstream(path("broken.json")) << "{]\n";
  for (const char* name : {"missing.json", "empty.json", "broken.json"}) {
    const Outcome outcome = run("bench report " + path(name) + " --out " + path("figures"));
    EXPECT_NE(outcome.status, 0) << name;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find(name), std::string::npos) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(path("figures")));
}

TEST_F(Bench, LeavesNoDataUnlessAsked) {
  ASSERT_EQ(bench("scan --size 1M --memory dram").status, 0);
  EXPECT_FALSE(std::filesystem::exists(path("outcore-bench-words-1048576-1.dat")));
  ASSERT_EQ(bench("scan --size 1M --memory dram --keep").status, 0);
  EXPECT_EQ(std::filesystem::file_size(path("outcore-bench-words-1048576-1.dat")), 1048576U);
}

TEST_F(Bench, AnInterruptedRunLeavesNoData) {
  const std::string command = "timeout --preserve-status -s INT 2 " + command_path() +
                              " bench scan --size 1M --passes 1000000000 --memory dram --dir " +
                              path("work") + " 2>" + path("err");
  std::filesystem::create_directory(path("work"));
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(std::filesystem::is_empty(path("work")));
}

TEST_F(Bench, AnInterruptedTableLeavesNoData) {
  std::filesystem::create_directory(path("work"));
  const std::string command = "timeout --preserve-status -s TERM 1 " + command_path() +
                              " bench table --quick --only sort --disk " + path("work") +
                              " --json-file " + path("table.json") + " >" + path("out") + " 2>" +
                              path("err");
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_TRUE(std::filesystem::is_empty(path("work")));
  std::ifstream file(path("err"));
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line.rfind("outcore: bench table: interrupted", 0), 0U) << line;
}

TEST_F(Bench, CompareRefusesADevice) {
  const Outcome outcome = run("bench compare /dev/zero /dev/zero");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("it is a device"), std::string::npos) << outcome.err;
}

TEST_F(Bench, NeverOverwritesAFileOfTheUser) {
  std::ofstream(path("precious")) << "thesis";
  const Outcome outcome = bench("sort --size 1M --memory dram --store " + path("precious"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("--overwrite"), std::string::npos) << outcome.err;
  std::string text;
  std::ifstream(path("precious")) >> text;
  EXPECT_EQ(text, "thesis");
}

TEST_F(Bench, AnUnwritableDirectoryIsOneLine) {
  const Outcome outcome = run("bench scan --size 1M --memory dram --dir " + path("missing"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_NE(outcome.err.find("--dir"), std::string::npos) << outcome.err;
}

TEST_F(Bench, ASparseStoreIsVerified) {
  const Outcome outcome = bench("random-io --size 4M --budget 2M --threads 2 --write-percent 50 " +
                                std::string("--touches 2000 --memory outcore --json --store ") +
                                "'sparse:" + path("segments") + "?segment=1M'");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.lines().front()["checked"], true);
}

class Refused : public Bench, public testing::WithParamInterface<const char*> {};

TEST_P(Refused, InOneLine) {
  const Outcome outcome = bench(GetParam());
  EXPECT_TRUE(outcome.status == 1 || outcome.status == 2) << outcome.status;
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, Refused,
    testing::Values(
        "random-io --size 1M --memory outcore --policy nonsense",
        "random-io --size 1M --memory outcore --delivery nonsense",
        "random-io --size 1M --memory outcore --frames nonsense",
        "random-io --size 1M --memory outcore --budget 4k",
        "random-io --size 1M --memory outcore --store nonsense:place",
        "sort --size 1M --memory outcore --reuse", "sort --size 1M --memory mmap --reuse --json",
        "random-io --size 1M --budget 8M --memory outcore --processes 2 --reuse --json",
        "random-io --size 1M --budget 8M --memory outcore --share on --reuse --json",
        "images --size 32k --memory dram", "images --touches 100000000 --memory dram",
        "images --memory malloc", "kmers --size 64k --memory dram",
        "kmers --index tree --memory dram", "kmers --memory direct", "kmers --pin-top",
        "kmers --processes 2 --budget 1M", "kmers --processes 0",
        "kmers --genomes no-such-folder --memory dram", "kmers --genomes '' --memory dram",
        "kmers --lookups --prefetch-lists", "kmers --lookups --reads 9", "kmers --touches 9",
        "matmul --order diagonal --memory dram", "matmul --tile 12 --memory dram",
        "matmul --tile 16384 --memory dram", "matmul --size 8k --memory dram",
        "matmul --size 64k --threads 90 --memory dram", "matmul --memory malloc",
        "matmul --processes 4 --page 64k", "matmul --processes 4 --budget 1M",
        "is --class X --memory dram", "is --class S --size 2M --memory dram",
        "is --size 32k --memory dram", "is --size 64G --memory dram",
        "is --passes 101 --memory dram", "is --memory malloc", "is --processes 2",
        "is --class 8% --budget 8%", "cg --class s --memory dram", "cg --size 128k --memory dram",
        "cg --passes 101 --memory dram", "cg --memory direct", "ft --class D --memory dram",
        "ft --size 128k --memory dram", "ft --memory direct", "ft --passes 101 --memory dram",
        "scan --share maybe", "scan --share on --frames private", "alloc --share on",
        "bfs --graph no-such-graph --memory dram", "components --memory malloc",
        "components --passes 2", "components --graph no-such-graph --memory dram",
        "pagerank --memory direct", "pagerank --passes 101 --memory dram",
        "ycsb --mix G --memory dram", "ycsb --distribution once --memory dram",
        "ycsb --size 32k --memory dram", "ycsb --memory direct",
        "ycsb --mix D --size 1M --memory dram", "pagerank --store redis://node:7000/x"));

TEST_F(Bench, AFileThatIsNoGraphIsRefused) {
  std::ofstream(path("graph")) << std::string(10000, 'x');
  const Outcome outcome = bench("bfs --memory dram --graph " + path("graph"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("not a graph"), std::string::npos) << outcome.err;
}

TEST_F(Bench, AGraphOfAnEdgeListIsSearched) {
  std::ofstream edges(path("edges"));
  edges << "# a ring of 1000\n";
  for (int v = 0; v < 1000; ++v) edges << v << ' ' << (v + 1) % 1000 << '\n';
  edges.close();
  const Outcome made = run("bench ingest " + path("edges") + " " + path("ring.csr"));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_NE(made.out.find("1000 vertices, 2000 edges"), std::string::npos) << made.out;
  const Outcome outcome =
      bench("bfs --memory dram,mmap --budget 32M --json --graph " + path("ring.csr"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const auto& line : outcome.lines()) {
    EXPECT_EQ(line["reached"], 1000);
    EXPECT_EQ(line["levels"], 501);  // half the ring either way, and the source
    EXPECT_EQ(line["checked"], true);
  }
}

TEST_F(Bench, AnEdgeListWithAWrongLineNamesIt) {
  std::ofstream(path("edges")) << "1 2\n3 four\n";
  const Outcome outcome = run("bench ingest " + path("edges") + " " + path("out"));
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("line 2"), std::string::npos) << outcome.err;
}

TEST_F(Bench, TheSameSeedMakesTheSameGraph) {
  ASSERT_EQ(run("bench generate rmat --scale 10 --seed 7 " + path("a")).status, 0);
  ASSERT_EQ(run("bench generate rmat --scale 10 --seed 7 " + path("b")).status, 0);
  ASSERT_EQ(run("bench generate rmat --scale 10 --seed 8 " + path("c")).status, 0);
  const auto bytes = [&](const char* name) {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(bytes("a"), bytes("b"));
  EXPECT_NE(bytes("a"), bytes("c"));
}

TEST_F(Bench, CompareGivesTheRatioOfMedians) {
  const auto write = [&](const char* name, double rate) {
    std::ofstream(path(name)) << Json{{"workload", "scan"}, {"memory", "outcore"},
                                      {"data_bytes", 1024}, {"budget_bytes", 512},
                                      {"threads", 1},       {"page_bytes", 4096},
                                      {"seconds", 1.0},     {"rate", rate}}
                                     .dump()
                              << '\n';
  };
  write("a", 300);
  write("b", 100);
  const Outcome outcome = run("bench compare " + path("a") + " " + path("b"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("3.00 x"), std::string::npos) << outcome.out;
}

TEST_F(Bench, CompareTakesNoOtherWorkForTheSame) {
  for (const auto& [name, passes] : {std::pair("a", "1"), std::pair("b", "2")}) {
    const Outcome made =
        bench(std::string("scan --size 1M --memory dram --json --passes ") + passes);
    ASSERT_EQ(made.status, 0) << made.err;
    std::ofstream(path(name)) << made.out;
  }
  const Outcome outcome = run("bench compare " + path("a") + " " + path("b"));
  EXPECT_EQ(outcome.status, 1) << outcome.out;
  EXPECT_NE(outcome.err.find("same work"), std::string::npos) << outcome.err;
}

TEST_F(Bench, CompareRefusesRunsThatDifferTooMuch) {
  const auto write = [&](const char* name, std::vector<double> rates) {
    std::ofstream file(path(name));
    for (const double rate : rates)
      file
          << Json{{"workload", "scan"}, {"memory", "mmap"}, {"seconds", 1.0}, {"rate", rate}}.dump()
          << '\n';
  };
  write("a", {100, 100, 130});
  write("b", {100, 100, 100});
  const Outcome outcome = run("bench compare " + path("a") + " " + path("b"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("no ratio"), std::string::npos) << outcome.out;
}

TEST_F(Bench, ARunBeyondItsTimeLimitIsStoppedAndSaysSo) {
  const Outcome outcome = bench("scan --size 8M --passes 1000000 --memory dram --limit 0.2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(outcome.lines().size(), 1U);
  EXPECT_EQ(outcome.lines().front()["stopped"], true);
  EXPECT_EQ(outcome.lines().front()["checked"], false);
}

}  // namespace
}  // namespace outcore::cli
