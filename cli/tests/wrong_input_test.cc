// What a user gets wrong is refused in one line, before anything is written or run; what was there
// stays as it was.
#include <sys/mount.h>

#include <cerrno>
#include <cstring>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class WrongInput : public CommandTest {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  // Everything in the test's directory but what run() leaves there.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir()))
      if (const std::string name = entry.path().filename(); name != "stderr") all.push_back(name);
    std::sort(all.begin(), all.end());
    return all;
  }
  // `arguments`, with DIR for the test's directory.
  Outcome run_here(std::string arguments) const {
    for (size_t at = 0; (at = arguments.find("DIR", at)) != std::string::npos; at += dir().size())
      arguments.replace(at, 3, dir());
    return run(arguments);
  }
  static void expect_one_line(const Outcome& outcome, int status) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0U) << outcome.err;
    EXPECT_TRUE(outcome.out.empty()) << outcome.out;
  }
  static void expect_says(const Outcome& outcome, const std::string& words) {
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " in " << outcome.err;
  }
  static void expect_says_not(const Outcome& outcome, const std::string& words) {
    EXPECT_EQ(outcome.err.find(words), std::string::npos) << words << " in " << outcome.err;
  }
  using Names = std::vector<std::string>;
};

// -- ingest and generate --

TEST_F(WrongInput, AGraphNeverOverwritesAFileOfTheUser) {
  write("edges", "1 2\n");
  write("precious", "thesis");
  for (const char* command : {"ingest DIR/edges DIR/precious", "generate rmat DIR/precious",
                              "generate words --size 1M DIR/precious"}) {
    const Outcome outcome = run_here(std::string("bench ") + command);
    expect_one_line(outcome, 1);
    expect_says(outcome, "--overwrite");
    expect_says_not(outcome, "--dir");
    expect_says_not(outcome, "--store");
    EXPECT_EQ(read("precious"), "thesis");
  }
  EXPECT_EQ(names(), (Names{"edges", "precious"}));
}

TEST_F(WrongInput, AGraphReplacesAFileWhereThatIsSaid) {
  write("edges", "1 2\n");
  write("old", "thesis");
  const Outcome first = run_here("bench ingest --overwrite DIR/edges DIR/old");
  EXPECT_EQ(first.status, 0) << first.err;
  EXPECT_GT(read("old").size(), 4096U);
  const Outcome again = run_here("bench ingest DIR/edges DIR/old");  // now it is a benchmark's
  EXPECT_EQ(again.status, 0) << again.err;
}

TEST_F(WrongInput, AnEdgeListIsNeverItsOwnGraph) {
  write("edges", "1 2\n");
  std::filesystem::create_hard_link(path("edges"), path("hard"));
  std::filesystem::create_symlink(path("edges"), path("soft"));
  for (const char* out : {"edges", "hard", "soft"}) {
    const Outcome outcome = run_here(std::string("bench ingest --overwrite DIR/edges DIR/") + out);
    expect_one_line(outcome, 2);
    expect_says(outcome, "EDGES");
    EXPECT_EQ(read("edges"), "1 2\n");
  }
  EXPECT_EQ(names(), (Names{"edges", "hard", "soft"}));
}

TEST_F(WrongInput, AGraphIsNotMadeWhereItCannotStay) {
  write("edges", "1 2\n");
  std::filesystem::create_directory(path("folder"));
  for (const char* out : {"memory:", "scratch:", "MEMORY:", "http://host/x", "''", "DIR/folder"}) {
    const Outcome outcome = run_here(std::string("bench ingest DIR/edges ") + out);
    expect_one_line(outcome, 2);
    expect_says_not(outcome, "--overwrite");
    expect_says_not(outcome, "--dir");
  }
  const Outcome outcome = run_here("bench ingest DIR/edges DIR/nowhere/graph");
  expect_one_line(outcome, 1);
  expect_says(outcome, "another OUT");
  expect_says_not(outcome, "--dir");
  EXPECT_EQ(names(), (Names{"edges", "folder"}));
}

TEST_F(WrongInput, AnEdgeListWithAWrongLineLeavesNothing) {
  for (const char* line : {"1 2junk", "1 two", "1", "1 2 heavy", "-1 2", "1 2.5", "1-2"}) {
    write("edges", std::string("# two numbers\n7 8\n") + line + "\n");
    const Outcome outcome = run_here("bench ingest DIR/edges DIR/graph");
    expect_one_line(outcome, 2);
    expect_says(outcome, "line 3");
  }
  for (const char* list : {"DIR", "DIR/nowhere", "/dev/null"}) {
    const Outcome outcome = run_here(std::string("bench ingest ") + list + " DIR/graph");
    EXPECT_NE(outcome.status, 0) << list;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  }
  EXPECT_EQ(names(), (Names{"edges"}));
}

TEST_F(WrongInput, AnEdgeMayHaveAWeightATimeAndAComment) {
  write("edges", "% a list\n1 2 0.5 1234567890\r\n\n  2\t3 +1 # heavy\n3,4,-1e3\n");
  const Outcome outcome = run_here("bench ingest DIR/edges DIR/graph");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("5 vertices, 6 edges"), std::string::npos) << outcome.out;
}

// -- stores --

TEST_F(WrongInput, AStoreThatCannotBeLeavesNothing) {
  std::filesystem::create_directory(path("folder"));
  for (const char* store : {"http://x/y", "nonsense:place", "file:", "sparse:", "file://host/x",
                            "MEMORY:", "SCRATCH:", "'file:DIR/x?direct=maybe'",
                            "'file:DIR/x?nonsense=1'", "'file:DIR/x?read_concurrency=z'",
                            "'sparse:DIR/x?segment=3'", "'sparse:DIR/x?direct=on'", "DIR/folder"}) {
    const Outcome outcome =
        run_here(std::string("bench scan --size 1M --memory outcore --store ") + store);
    expect_one_line(outcome, 2);
    expect_says_not(outcome, "--overwrite");
    EXPECT_EQ(names(), (Names{"folder"})) << store;
  }
  for (const char* store : {"DIR/nowhere/x", "sparse:DIR/nowhere/x"}) {
    const Outcome outcome =
        run_here(std::string("bench scan --size 1M --memory outcore --store ") + store);
    expect_one_line(outcome, 1);
    expect_says(outcome, "--store");
    expect_says_not(outcome, "--dir");
    EXPECT_EQ(names(), (Names{"folder"})) << store;
  }
}

TEST_F(WrongInput, AnUnknownSchemeIsCalledUnknown) {
  for (const char* memory : {"mmap", "outcore"}) {
    const Outcome outcome =
        run_here(std::string("bench scan --size 1M --store http://x/y --memory ") + memory);
    expect_one_line(outcome, 2);
    expect_says(outcome, "'http' is unknown");
  }
}

// By whatever command: what is wrong with its name is wrong use, and what it may be is told.
TEST_F(WrongInput, AUriThatCannotBeIsWrongUseOfEveryCommand) {
  struct Case {
    const char *uri, *words;
  };
  const Case cases[] = {
      {"nosuch:x", "'nosuch' is unknown"},
      {"sparse:DIR/s?x=1", "takes segment"},
      {"sparse:DIR/s?segment=3", "a power of two, from 4k to 1P"},
      {"sparse:DIR/s?read_concurrency=x", "write a whole number, 0 for no limit"},
      {"file:DIR/f?direct=maybe", "write auto, on or off"},
      {"memory:x", "write memory:"},
      {"scratch:?reserve=maybe", "write yes or no"},
      {"versioned:DIR/v?chunk=5", "write a power of two from 4k to 1M"},
      {"redis://127.0.0.1:port/a", "write host:port"},
      {"redis://127.0.0.1:1/a?timeout=abc", "as in 500ms or 30s"},
      {"redis://127.0.0.1:1/a?timeout=1ms", "timeout=1ms is not possible: write 100ms … 1d"},
      {"redis://127.0.0.1:1/a?lines=x", "lines=x is not possible: write 1 … "},
      {"redis://127.0.0.1:1/a?lines=0", "lines=0 is not possible: write 1 … "},
      {"redis://127.0.0.1:1/a?replicas=x", "replicas=x is not possible: write 0 … 16, or 1! …"},
      {"redis://127.0.0.1:1/a?chunk=3", "chunk=3 is not possible: write a power of two, 4k … 1M"},
      {"far://127.0.0.1:1?reserve=maybe", "write yes or no"}};
  const char* const commands[] = {"store du",
                                  "store rm",
                                  "store get URI DIR/out",
                                  "store verify",
                                  "heap check",
                                  "heap info",
                                  "arrays ls",
                                  "bench scan --size 1M --memory outcore --store"};
  for (const Case& c : cases)
    for (std::string command : commands) {
      const std::string uri = "'" + std::string(c.uri) + "'";
      const size_t at = command.find("URI");
      const Outcome outcome =
          run_here(at == std::string::npos ? command + " " + uri : command.replace(at, 3, uri));
      expect_one_line(outcome, 2);
      // A benchmark takes fewer kinds of store, and says so first.
      if (!command.starts_with("bench")) expect_says(outcome, c.words);
      EXPECT_EQ(names(), Names{}) << command << " " << c.uri;
    }
  write("file", "x");
  for (const char* command :
       {"checkpoint ls 'versioned:DIR/v?chunk=5'", "checkpoint rm 'rbd://pool/image?nosuch=1' x",
        "store put DIR/file 'redis://127.0.0.1:1/a?lines=x'",
        "run --alloc 1M --store 'redis://127.0.0.1:1/a?lines=x' -- true",
        "run --alloc 1M --store 'scratch:?reserve=x' -- true",
        "run --alloc 1M --store 'far://127.0.0.1:1?lines=x' -- true"})
    expect_one_line(run_here(command), 2);
}

TEST_F(WrongInput, AFileInThePlaceOfTheNoteIsNeverTouched) {
  for (const char* text : {"mine", "", "{}", "[1]", "{\"content\": 1, \"clean\": true}",
                           "{\"content\": \"\", \"clean\": true, \"more\": 1}"}) {
    write("data.bench.json", text);
    for (const char* command :
         {"scan --size 1M --memory dram --overwrite --store DIR/data",
          "sort --size 1M --memory dram --store DIR/data", "generate words --size 1M DIR/data",
          "scan --size 1M --memory outcore --store sparse:DIR/data"}) {
      const Outcome outcome = run_here(std::string("bench ") + command);
      expect_one_line(outcome, 1);
      expect_says(outcome, "data.bench.json");
      EXPECT_EQ(read("data.bench.json"), text);
      EXPECT_EQ(names(), (Names{"data.bench.json"}));
    }
  }
}

TEST_F(WrongInput, ANoteOfABenchmarkLetsTheNextOneIn) {
  for (const char* command : {"scan --size 1M", "sort --size 1M", "scan --size 2M"}) {
    const Outcome outcome =
        run_here(std::string("bench ") + command + " --memory dram --store DIR/data");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(names(), (Names{"data", "data.bench.json"}));
  }
}

// -- a full device --

class FullDevice : public WrongInput {
 protected:
  void SetUp() override {
    WrongInput::SetUp();
    std::filesystem::create_directory(path("full"));
    if (mount("outcore-test", path("full").c_str(), "tmpfs", 0, "size=4m") != 0)
      GTEST_SKIP() << "mounting a tmpfs needs root: " << std::strerror(errno);
    is_mounted_ = true;
  }
  ~FullDevice() override {
    if (is_mounted_) umount2(path("full").c_str(), MNT_DETACH);
  }

 private:
  bool is_mounted_ = false;
};

TEST_F(FullDevice, IsAnErrorThatLeavesNothing) {
  struct Case {
    const char *command, *words;
  };
  const Case cases[] = {
      {"scan --size 64M --memory dram --store DIR/full/x", " MiB are free: use --dir, --store or"},
      {"sort --size 64M --memory dram --dir DIR/full", " MiB are free: "},
      {"scan --size 64M --memory dram --keep --dir DIR/full", " MiB are free: "},
      {"generate words --size 64M DIR/full/x", " MiB are free: name an OUT"},
      {"generate rmat --scale 16 DIR/full/x", "more room"}};
  for (const Case& c : cases) {
    const Outcome outcome = run_here(std::string("bench ") + c.command);
    expect_one_line(outcome, 1);
    expect_says(outcome, c.words);
    EXPECT_EQ(names(), (Names{"full"})) << c.command;
    EXPECT_EQ(std::filesystem::space(path("full")).available, uint64_t{4} << 20) << c.command;
  }
}

TEST_F(FullDevice, LeavesAFileOfTheUserAsItWas) {
  write("full/precious", "thesis");
  for (const char* command : {"scan --size 64M --memory dram --overwrite --store DIR/full/precious",
                              "generate words --size 64M --overwrite DIR/full/precious"}) {
    const Outcome outcome = run_here(std::string("bench ") + command);
    expect_one_line(outcome, 1);
    EXPECT_EQ(read("full/precious"), "thesis");
    EXPECT_EQ(names(), (Names{"full", "precious"})) << command;
  }
}

// -- settings and numbers --

TEST_F(WrongInput, OutcoresSettingsAreCheckedBeforeTheRivalsRun) {
  for (const char* setting :
       {"--policy nonsense", "--policy fifo:x=1", "--delivery nonsense", "--frames nonsense",
        "--advice nonsense", "--budget 4k", "--budget 1M --page 1M"}) {
    const Outcome outcome = run_here(
        std::string("bench scan --size 4M --memory dram,outcore --dir DIR --json ") + setting);
    expect_one_line(outcome, 2);
    expect_says_not(outcome, "memory:");
    EXPECT_EQ(names(), Names{}) << setting;
  }
}

TEST_F(WrongInput, WhatMeansNothingIsRefused) {
  for (const char* arguments : {"random-io --latency maybe",
                                "random-io --touches=-5",
                                "random-io --touches -5",
                                "random-io --touches 99999999999999999999",
                                "random-io --seed -1",
                                "scan --stride -1",
                                "scan --size 1M --stride 1000",
                                "scan --limit -1",
                                "scan --limit nan",
                                "sort --limit inf",
                                "random-io --touches 0",
                                "images --touches 00",
                                "kmers --reads 0",
                                "alloc --blocks 0",
                                "pagerank --passes 0",
                                "is --passes 0",
                                "stream --passes 1",
                                "checkpoint --budget 0",
                                "random-io --distribution uniform:0.5",
                                "random-io --distribution once:",
                                "scan --memory outcore,outcore",
                                "scan --memory mmap,dram,mmap"}) {
    const Outcome outcome = run_here("bench " + std::string(arguments) + " --dir DIR");
    expect_one_line(outcome, 2);
    EXPECT_EQ(names(), Names{}) << arguments;
  }
  for (const char* size : {"0", "12", "4097"}) {
    const Outcome outcome = run_here(std::string("bench generate words DIR/w --size ") + size);
    expect_one_line(outcome, 2);
    expect_says(outcome, "multiple of 8");
    EXPECT_EQ(names(), Names{}) << size;
  }
}

TEST_F(WrongInput, AWrongPageIsToldAsItWasTyped) {
  for (const char* page : {"4097", "32M", "5k", "0"}) {
    const Outcome outcome = run_here(std::string("bench scan --page ") + page);
    expect_one_line(outcome, 2);
    expect_says(outcome, std::string("--page ") + page + " is");
  }
}

TEST_F(WrongInput, ATableWithoutRowsKeepsTheRunsOfTheLast) {
  write("runs.json", "old");
  const Outcome outcome = run_here("bench table --only zzz --json-file DIR/runs.json");
  expect_one_line(outcome, 2);
  expect_says(outcome, "zzz");
  EXPECT_EQ(read("runs.json"), "old");
}

TEST_F(WrongInput, ADemoChecksAllBeforeItsFirstPart) {
  write("edges", "1 2\n3 four\n");
  for (const char* arguments : {"--size 10M", "--edges DIR/edges", "--limit -1", "--limit nan"}) {
    const Outcome outcome = run_here(std::string("demo --dir DIR ") + arguments);
    expect_one_line(outcome, 2);
    EXPECT_EQ(names(), (Names{"edges"})) << arguments;
  }
}

}  // namespace
}  // namespace outcore::cli
