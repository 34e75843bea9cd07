// What `outcore bench bfs` is made of; its answers; and that what is wrong is found.
#include <fcntl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "bench/bitmap_frontier.h"
#include "bench/queue_frontier.h"
#include "bench/threads.h"
#include "cli/tests/damaged_bench.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kTestVertices = 20'000;
constexpr unsigned kTestThreads = 4;

// Every frontier passes the same suite.
class EveryFrontier : public testing::TestWithParam<bool> {
 protected:
  EveryFrontier() {
    const uint64_t bytes = GetParam()
                               ? bench::QueueFrontier::size_bytes(kTestVertices, kTestThreads)
                               : bench::BitmapFrontier::size_bytes(kTestVertices);
    // Queues take memory as it is.
    memory_.assign(bytes / 8, GetParam() ? ~uint64_t{0} : 0);
    const auto memory = std::as_writable_bytes(std::span(memory_));
    if (GetParam())
      frontier_ = std::make_unique<bench::QueueFrontier>(memory, kTestVertices, kTestThreads);
    else
      frontier_ = std::make_unique<bench::BitmapFrontier>(memory, kTestVertices);
  }
  // Takes all of a level; each portion ascends.
  std::multiset<uint64_t> take_all() const {
    std::multiset<uint64_t> all;
    std::vector<uint64_t> vertices;
    while (frontier_->take(vertices)) {
      EXPECT_TRUE(std::is_sorted(vertices.begin(), vertices.end()));
      all.insert(vertices.begin(), vertices.end());
    }
    return all;
  }

  std::vector<uint64_t> memory_;
  std::unique_ptr<bench::Frontier> frontier_;
};

TEST_P(EveryFrontier, ThatIsEmptyEndsTheSearch) {
  EXPECT_FALSE(frontier_->next_level());
  EXPECT_TRUE(take_all().empty());
}

TEST_P(EveryFrontier, WhatWasFoundIsVisitedInTheNextLevelOnly) {
  for (const uint64_t vertex : {kTestVertices - 1, uint64_t{7}, uint64_t{0}})
    frontier_->add(0, vertex);
  ASSERT_TRUE(frontier_->next_level());
  frontier_->add(1, 8);
  EXPECT_EQ(take_all(), (std::multiset<uint64_t>{0, 7, kTestVertices - 1}));
  ASSERT_TRUE(frontier_->next_level());
  EXPECT_EQ(take_all(), std::multiset<uint64_t>{8});
  EXPECT_FALSE(frontier_->next_level());
}

TEST_P(EveryFrontier, ThreadsFindAllVerticesInOneLevelAndAgainInTheNext) {
  std::multiset<uint64_t> all;
  for (uint64_t v = 0; v < kTestVertices; ++v) all.insert(v);
  for (int level = 0; level < 3; ++level) {
    bench::on_threads(kTestThreads, [&](unsigned thread) {
      for (uint64_t v = thread; v < kTestVertices; v += kTestThreads)
        frontier_->add(thread, kTestVertices - 1 - v);
    });
    ASSERT_TRUE(frontier_->next_level());
    EXPECT_EQ(take_all(), all);
  }
}

INSTANTIATE_TEST_SUITE_P(Both, EveryFrontier, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "queues" : "bitmaps"; });

class GraphBench : public DamagedBench {
 protected:
  // `edges` become a graph file.
  std::string made(const std::string& edges, const std::string& options = "") const {
    std::ofstream(path("edges")) << edges;
    const Outcome outcome = run("bench ingest " + options + " " + path("edges") + " " + path("g"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return " --graph " + path("g");
  }
  // The JSON of runs in three memories, which are all right.
  std::vector<Json> answers(const std::string& arguments) const {
    const Outcome outcome =
        run("bench " + arguments + " --memory dram,mmap,outcore --budget 2M --json --dir " + dir());
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    for (const Json& line : outcome.lines()) EXPECT_EQ(line["checked"], true);
    EXPECT_EQ(outcome.lines().size(), 3U);
    return outcome.lines();
  }
};

TEST_F(GraphBench, AnswersAreThoseOfOneThread) {
  for (const char* work : {"bfs"}) {
    std::set<std::string> hashes;
    for (const char* threads : {"1", "4"}) {
      const std::string arguments = std::string(work) + " --scale 11 --threads " + threads;
      for (const Json& line : answers(arguments)) hashes.insert(line["answer_hash"].dump());
      for (const Json& line : answers(arguments + " --fully-external")) {
        EXPECT_FALSE(line.contains("answer_hash"));  // what the file holds is compared
        EXPECT_EQ(line["variant"], "fully external");
      }
    }
    EXPECT_EQ(hashes.size(), 1U) << work;
  }
}

TEST_F(GraphBench, AGraphThatWasDamagedIsFoundByEachWork) {
  ASSERT_EQ(bench("bfs --scale 10").status, 0);
  damage("outcore-bench-rmat-10-16-1.csr");
  for (const char* work : {"bfs", "bfs --fully-external"}) {
    const Outcome outcome = bench(std::string(work) + " --scale 10");
    EXPECT_EQ(outcome.status, 1) << work;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("has been changed"), std::string::npos) << outcome.err;
  }
}

TEST_F(GraphBench, OneOtherEdgeInAGraphFileIsFound) {
  const std::string graph = made("0 1\n1 2\n2 3\n");
  std::fstream file(path("g"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);  // the neighbour of 3
  file.put('\0');
  file.close();
  const Outcome outcome = bench("bfs" + graph);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("has been changed"), std::string::npos) << outcome.err;
}

// While somebody else writes to the file of the state.
TEST_F(GraphBench, AWrongAnswerInTheFileOfTheStateIsFound) {
  for (const char* work : {"bfs"}) {
    const std::string file = path("outcore-bench-rmat-10-16-1.csr.state");
    std::atomic<bool> is_over{false};
    std::thread other([&] {
      const std::string garbage(512, '\x55');
      int to = -1;
      while (!is_over && (to = ::open(file.c_str(), O_WRONLY)) < 0) std::this_thread::yield();
      while (!is_over && ::pwrite(to, garbage.data(), garbage.size(), 0) > 0) {
      }
      ::close(to);
    });
    const Outcome outcome = run("bench " + std::string(work) +
                                " --scale 10 --fully-external --memory mmap --dir " + dir());
    is_over = true;
    other.join();
    EXPECT_EQ(outcome.status, 1) << work;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
    EXPECT_NE(outcome.err.find("not that of the work in plain memory"), std::string::npos)
        << outcome.err;
  }
}

TEST_F(GraphBench, TheStateGoesWithTheGraphWhichIsMadeOnce) {
  for (const char* work : {"bfs"}) answers(std::string(work) + " --scale 10 --fully-external");
  for (const auto& entry : std::filesystem::directory_iterator(dir()))
    EXPECT_EQ(entry.path().string().find("rmat"), std::string::npos) << entry.path();
  ASSERT_EQ(bench("bfs --scale 10").status, 0);
  const auto made_at = std::filesystem::last_write_time(path("outcore-bench-rmat-10-16-1.csr"));
  ASSERT_EQ(bench("bfs --scale 10 --threads 1").status, 0);
  EXPECT_EQ(std::filesystem::last_write_time(path("outcore-bench-rmat-10-16-1.csr")), made_at);
}

}  // namespace
}  // namespace outcore::cli
