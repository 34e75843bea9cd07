// `outcore heap check`, `outcore heap info` and `outcore bench graph-construct`.
#include "cli/tests/command_line.h"
#include "heaps/tests/heap/persistent_scene.h"

namespace outcore::cli {
namespace {

using scene::start_runtime;
using scene::take;

class HeapCommand : public CommandTest {
 protected:
  HeapCommand() {
    Runtime runtime = start_runtime();
    PersistentHeap heap = take(PersistentHeap::create(runtime, heap_path, {.version = 5}));
    take(heap.construct_array<uint64_t>("numbers", 1000));
    take(heap.construct<persistent::string>("text\nof two lines", 100u, 'x'));
    EXPECT_OK(heap.close());
  }
  Outcome run_heap(const std::string& words) const { return run("heap " + words); }
  const std::string heap_path = path("heap");
};

TEST_F(HeapCommand, FindsNothingWrongWithASoundHeap) {
  const Outcome outcome = run_heap("check " + heap_path);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.out, heap_path + ": nothing is wrong\n");
  EXPECT_EQ(Json::parse_or_null(run_heap("check --json " + heap_path).out)["findings"],
            Json::array());
}

TEST_F(HeapCommand, TellsWhatIsInAHeap) {
  const Outcome outcome = run_heap("info " + heap_path);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("consistent       yes"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1000 x 8 B of unsigned long"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("text of two lines"), std::string::npos) << outcome.out;
  const auto json = Json::parse_or_null(run_heap("info --json " + heap_path).out);
  EXPECT_EQ(json["version"], 5);
  EXPECT_EQ(json["objects"].size(), 2u);
  EXPECT_EQ(json["size_bytes"], std::filesystem::file_size(heap_path));
}

TEST_F(HeapCommand, TellsATypeShortToPeopleAndWholeInJson) {
  const std::string other = path("other");
  {
    Runtime runtime = start_runtime();
    PersistentHeap heap = take(PersistentHeap::create(runtime, other));
    using Table = persistent::map<uint64_t, persistent::vector<double>>;
    take(heap.construct<Table>("table"));
    take(heap.construct<persistent::string>("text", "x"));
    EXPECT_OK(heap.close());
  }
  const std::string out = run_heap("info " + other).out;
  EXPECT_NE(out.find(" of boost::container::map<unsigned long, boost::container::vector<double>>,"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find(" of boost::container::basic_string<char>,"), std::string::npos) << out;
  const auto json = Json::parse_or_null(run_heap("info --json " + other).out);
  for (const Json& object : json["objects"])
    EXPECT_NE(object.value("type", "").find("outcore::PersistentAllocator<"), std::string::npos)
        << object;
}

TEST_F(HeapCommand, TellsEachFindingInALine) {
  std::vector<char> bytes = scene::read_file(heap_path);
  bytes[30] ^= 1;
  scene::write_file(heap_path, bytes);
  Outcome outcome = run_heap("check " + heap_path);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out,
            "copy 1 of the header is damaged: the other copy is used, and nothing is lost\n");
  EXPECT_EQ(run_heap("info " + heap_path).status, 0);
  scene::write_file(heap_path, std::vector<char>(10000, 'x'));
  outcome = run_heap("check " + heap_path);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.out, "");
  EXPECT_TRUE(outcome.err.starts_with("outcore: check the heap ")) << outcome.err;
  EXPECT_NE(outcome.err.find("not a persistent heap"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("create()"), std::string::npos) << outcome.err;
  EXPECT_EQ(run_heap("info " + heap_path).status, 1);
}

TEST_F(HeapCommand, SaysWhatItCannotDo) {
  Outcome outcome = run_heap("check " + path("missing"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.err.rfind("outcore: ", 0), 0u) << outcome.err;
  EXPECT_EQ(outcome.error_lines(), 1u);
  EXPECT_NE(outcome.err.find("check the path, or create it first"), std::string::npos);
  EXPECT_EQ(run_heap("check nosuch://x").status, 2);
  EXPECT_EQ(run_heap("check " + dir()).status, 1);
  EXPECT_EQ(run_heap("").status, 2);
  EXPECT_EQ(run_heap("check").status, 2);
  EXPECT_EQ(run_heap("mend " + heap_path).status, 2);
  Runtime runtime = start_runtime();
  PersistentHeap heap = take(PersistentHeap::open(runtime, heap_path));
  outcome = run_heap("check " + heap_path);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("open elsewhere"), std::string::npos) << outcome.err;
}

// In Outcore's with several threads and a budget that it does not fit.
TEST_F(HeapCommand, BenchBuildsTheSameGraphInEveryMemory) {
  const std::string graph = "bench graph-construct --scale 13 --threads 2 --json --dir " + dir();
  for (const char* memory : {" --memory malloc,mmap --budget 64M", " --memory outcore --budget 4M",
                             " --memory mmap-random,outcore --allocator boost --budget 8M",
                             " --memory mmap,mmap-random --allocator own --budget 16M"}) {
    const Outcome outcome = run(graph + memory);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    int runs = 0;
    for (const Json& line : outcome.lines()) {
      if (!line.is_object()) continue;  // a word on the machine
      ++runs;
      EXPECT_EQ(line["checked"], true) << line;
      EXPECT_EQ(line["edges"], 16u << 13) << line;
      const bool is_own = std::string(memory).find("--allocator own") != std::string::npos;
      if (is_own) {
        EXPECT_EQ(line["variant"], "own allocator") << line;
        for (const char* key : {"heap_bytes", "open_seconds", "close_seconds"})
          EXPECT_TRUE(line.contains(key)) << key;
      }
    }
    EXPECT_EQ(runs, std::string(memory).find("mmap") != std::string::npos ? 2 : 1) << outcome.out;
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir()))
    EXPECT_NE(entry.path().extension(), ".heap") << entry.path();
}

TEST_F(HeapCommand, BenchHasOurHeapOverBothAdvicesOfMmap) {
  const Outcome outcome =
      run("bench graph-construct --scale 12 --json --allocator own --budget 16M --memory "
          "mmap,mmap-random,outcore --dir " +
          dir());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::vector<std::string> memories;
  for (const Json& line : outcome.lines()) {
    if (!line.is_object()) continue;
    EXPECT_EQ(line["checked"], true) << line;
    memories.push_back(line.value("memory", ""));
  }
  EXPECT_EQ(memories, (std::vector<std::string>{"malloc", "mmap", "mmap-random", "outcore"}));
}

TEST_F(HeapCommand, BenchRefusesAnAllocatorThatItDoesNotHave) {
  for (const std::string& more :
       {std::string("--allocator metall"), "--allocator boost --store sparse:" + path("sparse"),
        "--memory mmap --allocator own --store sparse:" + path("sparse")}) {
    const Outcome outcome = run("bench graph-construct --scale 12 " + more);
    EXPECT_EQ(outcome.status, 2) << outcome.out;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  }
}

// The heap lies where --store says, and goes afterwards, as what was there stays.
TEST_F(HeapCommand, BenchBuildsItsGraphInTheStoreThatIsNamed) {
  const std::string graph = "bench graph-construct --scale 12 --threads 2 --json --memory outcore ";
  std::filesystem::create_directory(path("empty"));
  for (const std::string& store :
       {"sparse:" + path("sparse") + "?segment=1M", "sparse:" + path("empty"),
        "file:" + path("named.heap"), path("path.heap"), "scratch:" + dir()}) {
    const Outcome outcome = run(graph + "--store '" + store + "'");
    ASSERT_EQ(outcome.status, 0) << store << ": " << outcome.err;
    const Json line = outcome.lines().back();
    EXPECT_EQ(line["store"], store);
    EXPECT_EQ(line["checked"], true) << line;
    EXPECT_EQ(line.contains("files"), store.starts_with("sparse:")) << line;
  }
  for (const char* name : {"sparse", "named.heap", "path.heap"})
    EXPECT_FALSE(std::filesystem::exists(path(name))) << name;
  EXPECT_TRUE(std::filesystem::is_empty(path("empty")));
}

// Two MiB in segments of one, and a file beside them that says what they are.
TEST_F(HeapCommand, BenchTellsTheFilesOfASparseStoreAndOverwritesNone) {
  const std::string graph = "bench graph-construct --scale 12 --json --memory outcore ";
  const std::string store = "--store 'sparse:" + path("kept") + "?segment=64k' --keep";
  Outcome outcome = run(graph + store);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const uint64_t files = outcome.lines().back()["files"].as<uint64_t>().value();
  EXPECT_GT(files, 16U);
  EXPECT_EQ(
      static_cast<uint64_t>(std::distance(std::filesystem::directory_iterator(path("kept")), {})),
      files);
  outcome = run(graph + store + " --overwrite");
  EXPECT_EQ(outcome.status, 1) << outcome.out;
  EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  std::ofstream(path("thesis")) << "precious";
  outcome = run(graph + "--store " + path("thesis"));
  EXPECT_EQ(outcome.status, 1) << outcome.out;
  EXPECT_NE(outcome.err.find("--overwrite"), std::string::npos) << outcome.err;
  EXPECT_EQ(std::filesystem::file_size(path("thesis")), 8U);
}

}  // namespace
}  // namespace outcore::cli
