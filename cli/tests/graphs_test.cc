// What `outcore bench bfs`, `components` and `pagerank` are made of; their answers for graphs whose
// answers are known; and that what is wrong is found.
#include <fcntl.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>

#include "bench/bitmap_frontier.h"
#include "bench/disjoint_sets.h"
#include "bench/queue_frontier.h"
#include "bench/random.h"
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

TEST(DisjointSets, TheRootIsTheSmallestOfASetWhoeverJoins) {
  for (const unsigned threads : {1U, 4U}) {
    std::vector<uint64_t> parents(kTestVertices);
    bench::DisjointSets sets{std::span(parents)};
    for (uint64_t v = 0; v < kTestVertices; ++v) sets.reset(v);
    // Seven sets by their remainders, joined in a random order.
    const bench::Permutation order(kTestVertices, 3);
    bench::on_threads(threads, [&](unsigned thread) {
      for (uint64_t i = thread; i < kTestVertices; i += threads) {
        const uint64_t v = order(i);
        sets.join(v, v + 7 < kTestVertices ? v + 7 : v % 7);
      }
    });
    for (uint64_t v = 0; v < kTestVertices; ++v) {
      ASSERT_EQ(sets.root(v), v % 7);
      ASSERT_EQ(sets.flatten(v), v % 7);
      ASSERT_EQ(parents[v], v % 7);
    }
  }
}

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

TEST_F(GraphBench, ComponentsAreCounted) {
  std::string edges = "11 11\n";  // by itself
  for (int v = 0; v < 4; ++v) edges += std::to_string(v + 1) + " " + std::to_string(v) + "\n";
  for (int v = 5; v < 10; ++v) edges += std::to_string(v) + " 10\n";
  for (const char* directed : {"", "--directed"}) {
    const std::string graph = made(edges, directed);
    for (const char* external : {"", " --fully-external"})
      for (const Json& line : answers("components" + graph + external))
        EXPECT_EQ(line["components"], 3);
  }
}

TEST_F(GraphBench, TheHubOfAStarHasTheRankThatArithmeticGivesIt) {
  std::string edges;
  for (int v = 1; v <= 10; ++v) edges += "0 " + std::to_string(v) + "\n";
  const std::string graph = made(edges);
  double hub = 1, leaf = 1;
  for (int passes = 1; passes <= 4; ++passes) {
    const double to_leaf = 0.15 + 0.85 * hub / 10;
    hub = 0.15 + 0.85 * leaf * 10;
    leaf = to_leaf;
    const std::string work = "pagerank --passes " + std::to_string(passes) + graph;
    for (const char* external : {"", " --fully-external"})
      for (const Json& line : answers(work + external))
        EXPECT_NEAR(line["rank_max"].as<double>().value(), std::max(hub, leaf), 1e-6) << passes;
  }
}

// A vertex without edges gives its rank to all alike.
TEST_F(GraphBench, RanksOfAVertexThatLeadsNowhereAreNotLost) {
  const std::string graph = made("0 1\n", "--directed");
  for (const Json& line : answers("pagerank --passes 1" + graph))
    EXPECT_NEAR(line["rank_max"].as<double>().value(), 0.15 + 0.85 + 0.85 / 2, 1e-6);
}

TEST_F(GraphBench, AnswersAreThoseOfOneThread) {
  for (const char* work : {"bfs", "components", "pagerank"}) {
    std::set<std::string> hashes;
    for (const char* threads : {"1", "4"}) {
      const std::string arguments = std::string(work) + " --scale 11 --threads " + threads;
      for (const Json& line : answers(arguments)) hashes.insert(line["answer_hash"].dump());
      for (const Json& line : answers(arguments + " --fully-external")) {
        EXPECT_FALSE(line.contains("answer_hash"));  // what the file holds is compared
        EXPECT_EQ(line["variant"], "fully external");
      }
      if (std::string(work) != "bfs") continue;
      for (const Json& line : answers(arguments + " --asynchronous")) {
        hashes.insert(line["answer_hash"].dump());
        EXPECT_GE(line["visits"].as<uint64_t>(), line["reached"].as<uint64_t>());
      }
      for (const Json& line : answers(arguments + " --asynchronous --fully-external"))
        EXPECT_EQ(line["variant"], "fully external, asynchronous");
    }
    EXPECT_EQ(hashes.size(), 1U) << work;
  }
}

TEST_F(GraphBench, AGraphThatWasDamagedIsFoundByEachWork) {
  ASSERT_EQ(bench("bfs --scale 10").status, 0);
  damage("outcore-bench-rmat-10-16-1.csr");
  for (const char* work :
       {"bfs", "components", "pagerank", "bfs --fully-external", "bfs --asynchronous"}) {
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
  const Outcome outcome = bench("components" + graph);
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("has been changed"), std::string::npos) << outcome.err;
}

// While somebody else writes to the file of the state.
TEST_F(GraphBench, AWrongAnswerInTheFileOfTheStateIsFound) {
  for (const char* work : {"bfs", "bfs --asynchronous", "pagerank"}) {
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

TEST_F(GraphBench, TheStateGoesWithTheGraphAndTheGraphIsSharedByAll) {
  for (const char* work : {"bfs", "components", "pagerank"})
    answers(std::string(work) + " --scale 10 --fully-external");
  for (const auto& entry : std::filesystem::directory_iterator(dir()))
    EXPECT_EQ(entry.path().string().find("rmat"), std::string::npos) << entry.path();
  ASSERT_EQ(bench("bfs --scale 10").status, 0);
  const auto made_at = std::filesystem::last_write_time(path("outcore-bench-rmat-10-16-1.csr"));
  ASSERT_EQ(bench("pagerank --scale 10").status, 0);
  EXPECT_EQ(std::filesystem::last_write_time(path("outcore-bench-rmat-10-16-1.csr")), made_at);
}

}  // namespace
}  // namespace outcore::cli
