// The queues of an asynchronous search, and its levels, which are those of a search by levels.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "bench/asynchronous_search.h"
#include "bench/random.h"
#include "bench/threads.h"
#include "bench/visitor_queues.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kVisitedVertices = 50'000;

// Queues in memory that holds something.
class Queues {
 public:
  explicit Queues(unsigned threads)
      : memory_(VisitorQueues::size_bytes(kVisitedVertices, threads) / sizeof(uint64_t),
                ~uint64_t{0}),
        queues_(std::as_writable_bytes(std::span(memory_)), kVisitedVertices, threads) {}
  VisitorQueues* operator->() { return &queues_; }

 private:
  std::vector<uint64_t> memory_;
  VisitorQueues queues_;
};

// All vertices of one portion; empty: there is none.
std::vector<uint64_t> taken(Queues& queues, unsigned thread) {
  std::vector<uint64_t> vertices;
  if (!queues->take(thread, vertices)) return {};
  EXPECT_TRUE(std::is_sorted(vertices.begin(), vertices.end()));
  EXPECT_FALSE(vertices.empty());
  return vertices;
}

TEST(VisitorQueues, ThatAreEmptyEndTheSearch) {
  Queues queues(1);
  EXPECT_TRUE(taken(queues, 0).empty());
  EXPECT_TRUE(taken(queues, 0).empty());
}

TEST(VisitorQueues, WhatIsNearComesBeforeWhatIsFar) {
  Queues queues(1);
  queues->add(0, 7, 1);
  EXPECT_EQ(taken(queues, 0), std::vector<uint64_t>{7});
  queues->add(0, 30, 2);
  queues->add(0, 20, 2);
  queues->add(0, 5, 1);  // as near as 7
  EXPECT_EQ(taken(queues, 0), std::vector<uint64_t>{5});
  EXPECT_EQ(taken(queues, 0), (std::vector<uint64_t>{20, 30}));
  queues->add(0, 40, 3);
  queues->add(0, 41, 2);  // of the level that is visited
  EXPECT_EQ(taken(queues, 0), std::vector<uint64_t>{41});
  EXPECT_EQ(taken(queues, 0), std::vector<uint64_t>{40});
  EXPECT_TRUE(taken(queues, 0).empty());
}

TEST(VisitorQueues, AThreadWithoutAnyTakesFullBlocksOfOthers) {
  Queues queues(2);
  const uint64_t count = VertexBlock::kVertices + 1;
  for (uint64_t v = 0; v < count; ++v) queues->add(0, v, 1);
  EXPECT_EQ(taken(queues, 1).size(), VertexBlock::kVertices);
  EXPECT_EQ(taken(queues, 0), std::vector<uint64_t>{count - 1});
}

// A tree, of which each vertex adds its children: the threads wait for each other at its root, and
// at its end. Three times as many visits as the memory holds at once.
TEST(VisitorQueues, ThreadsVisitEachVertexAsOftenAsItIsAddedAndEnd) {
  constexpr uint8_t kTimes = 3;
  for (const unsigned threads : {1U, 2U, 5U, 16U}) {
    Queues queues(threads);
    std::vector<uint8_t> visits(kVisitedVertices);
    queues->add(0, 0, 1);
    on_threads(threads, [&](unsigned thread) {
      std::vector<uint64_t> vertices;
      while (queues->take(thread, vertices))
        for (const uint64_t v : vertices) {
          const uint8_t times = ++std::atomic_ref(visits[v]);
          if (times < kTimes) {
            queues->add(thread, v, times);
            continue;
          }
          for (const uint64_t child : {2 * v + 1, 2 * v + 2})
            if (child < kVisitedVertices) queues->add(thread, child, static_cast<uint32_t>(v % 7));
        }
    });
    EXPECT_EQ(static_cast<uint64_t>(std::count(visits.begin(), visits.end(), kTimes)),
              kVisitedVertices)
        << threads;
  }
}

// A graph file's bytes, of edges that lead both ways.
class SmallGraph {
 public:
  SmallGraph(uint64_t vertices, std::vector<std::pair<uint64_t, uint64_t>> edges) {
    const size_t one_way = edges.size();
    for (size_t i = 0; i < one_way; ++i) edges.emplace_back(edges[i].second, edges[i].first);
    std::sort(edges.begin(), edges.end());
    const uint64_t offset_words = vertices + 1;
    CsrHeader header;
    header.vertices = vertices;
    header.edges = edges.size();
    header.targets_at = CsrHeader::kBytes + (offset_words * 8 + 4095) / 4096 * 4096;
    words_.resize(header.size_bytes() / sizeof(uint64_t));
    std::memcpy(words_.data(), &header, sizeof header);
    uint64_t* const offsets = words_.data() + CsrHeader::kBytes / sizeof(uint64_t);
    uint64_t* const targets = words_.data() + header.targets_at / sizeof(uint64_t);
    for (size_t i = 0; i < edges.size(); ++i) {
      ++offsets[edges[i].first + 1];
      targets[i] = edges[i].second;
    }
    for (uint64_t v = 0; v < vertices; ++v) offsets[v + 1] += offsets[v];
  }
  CsrView view() const { return CsrView(std::as_bytes(std::span(words_))); }

 private:
  std::vector<uint64_t> words_;
};

// The source leads to more vertices than a block has. The first leads into a long chain, which the
// last leads into near its end. Whoever has visited the source stops, with the last in its own open
// block, until another has followed the chain: those at its end are then reached on a shorter way.
TEST(AsynchronousSearch, VisitsAgainWhatIsReachedOnAShorterWayLater) {
  constexpr uint64_t kNear = VertexBlock::kVertices + 10, kChain = 60, kShortcut = 50;
  const auto chain = [](uint64_t i) { return 1 + kNear + i; };
  std::vector<std::pair<uint64_t, uint64_t>> edges;
  for (uint64_t i = 1; i <= kNear; ++i) edges.emplace_back(0, i);
  edges.emplace_back(1, chain(0));
  for (uint64_t i = 1; i < kChain; ++i) edges.emplace_back(chain(i - 1), chain(i));
  edges.emplace_back(kNear, chain(kShortcut));
  const SmallGraph graph(1 + kNear + kChain, edges);
  const CsrView view = graph.view();
  std::vector<uint32_t> levels(view.header.vertices);
  std::vector<uint64_t> memory(AsynchronousSearch::size_bytes(view.header.vertices, 2) / 8);
  AsynchronousSearch search(view, levels.data(), std::as_writable_bytes(std::span(memory)), 2);
  std::atomic<uint64_t> told{0};
  search.run(0, [&](uint64_t reached) {
    const uint64_t before = told.fetch_add(reached);
    told.notify_all();
    const uint64_t by_other = 1 + VertexBlock::kVertices + kChain;
    for (uint64_t now = told; before == 0 && now < by_other; now = told) told.wait(now);
  });
  EXPECT_EQ(search.reached(), view.header.vertices);
  EXPECT_GE(search.visits(), search.reached() + (kChain - kShortcut));
  EXPECT_EQ(levels[chain(kShortcut)], 3U);
  EXPECT_EQ(levels[chain(kChain - 1)], 3 + kChain - 1 - kShortcut);
  EXPECT_EQ(levels[chain(kShortcut / 2)], 3 + kShortcut / 2);
}

std::vector<uint32_t> asynchronous_levels(const SmallGraph& graph, unsigned threads) {
  const CsrView view = graph.view();
  const uint64_t vertices = view.header.vertices;
  std::vector<uint32_t> levels(vertices);
  std::vector<uint64_t> memory(AsynchronousSearch::size_bytes(vertices, threads) / 8);
  AsynchronousSearch search(view, levels.data(), std::as_writable_bytes(std::span(memory)),
                            threads);
  std::atomic<uint64_t> told{0};
  search.run(0, [&](uint64_t reached) { told += reached; });
  EXPECT_EQ(told, search.reached());
  EXPECT_GE(search.visits(), search.reached());
  uint64_t edges = 0, reached = 0;
  for (uint64_t v = 0; v < vertices; ++v) {
    if (levels[v] == 0) continue;
    ++reached;
    edges += view.offsets[v + 1] - view.offsets[v];
  }
  EXPECT_EQ(search.reached(), reached);
  EXPECT_EQ(search.edges(), edges);
  return levels;
}

// As many levels as half of the vertices: from both sides threads meet somewhere.
TEST(AsynchronousSearch, OfARingFindsTheShorterWayToEachVertex) {
  constexpr uint64_t kRing = 3001;
  std::vector<std::pair<uint64_t, uint64_t>> edges;
  for (uint64_t v = 0; v < kRing; ++v) edges.emplace_back(v, (v + 1) % kRing);
  const SmallGraph graph(kRing + 1, edges);  // the last is never reached
  for (const unsigned threads : {1U, 4U}) {
    const auto levels = asynchronous_levels(graph, threads);
    for (uint64_t v = 0; v < kRing; ++v) ASSERT_EQ(levels[v], 1 + std::min(v, kRing - v));
    EXPECT_EQ(levels[kRing], 0U);
  }
}

// A fan, whose vertices all lead into a long chain, each a step later: most ways are too long.
TEST(AsynchronousSearch, LowersLevelsThatCameTooEarly) {
  constexpr uint64_t kFan = 2000, kVertices = 2 * kFan + 1;
  std::vector<std::pair<uint64_t, uint64_t>> edges;
  for (uint64_t i = 1; i <= kFan; ++i) {
    edges.emplace_back(i - 1, i);          // a chain from the source
    edges.emplace_back(i, kFan + i);       // a way out of each of its vertices,
    edges.emplace_back(0, kVertices - i);  // to which the source leads as well
  }
  const SmallGraph graph(kVertices, edges);
  std::vector<uint32_t> one = asynchronous_levels(graph, 1);
  for (uint64_t i = 1; i <= kFan; ++i) EXPECT_EQ(one[kFan + i], 2U);
  for (uint64_t i = 1; i <= kFan; ++i)
    ASSERT_EQ(one[i], std::min<uint64_t>(i + 1, 3));  // by its way out
  for (unsigned run = 0; run < 20; ++run)
    for (const unsigned threads : {2U, 4U, 16U})
      ASSERT_EQ(asynchronous_levels(graph, threads), one);
}

}  // namespace
}  // namespace outcore::bench
