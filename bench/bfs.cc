// bfs: a breadth-first search of a graph file (csr.h), level by level, or without a wait between
// them (--asynchronous).
//
// Its state is the level of each vertex and the frontiers: bitmaps in the program's own memory, or
// queues in a second mapping (--fully-external); of an asynchronous search queues in either.
#include <algorithm>
#include <atomic>
#include <memory>

#include "bench/asynchronous_search.h"
#include "bench/bitmap_frontier.h"
#include "bench/check.h"
#include "bench/graph_workload.h"
#include "bench/queue_frontier.h"

namespace outcore::bench {
namespace {

// A search: the graph, the levels and the frontier. run() is called once.
// Level 0: never reached; 1: the source.
class Search {
 public:
  Search(const CsrView& graph, uint32_t* levels, Frontier& frontier)
      : graph_(graph), levels_(levels), frontier_(frontier) {}

  void run(uint64_t source, unsigned threads, Stage& stage) {
    BENCH_CHECK(source < graph_.header.vertices);
    levels_[source] = 1;
    frontier_.add(0, source);
    for (uint32_t level = 2; frontier_.next_level(); ++level) {
      on_threads(threads, [&](unsigned thread) { expand(thread, level, stage); });
      ++levels_count_;
    }
    BENCH_CHECK(vertices_seen_.load() != 0);
  }
  uint64_t edges_seen() const { return edges_seen_; }
  uint64_t vertices_seen() const { return vertices_seen_; }
  unsigned levels_count() const { return levels_count_; }

 private:
  void expand(unsigned thread, uint32_t level, Stage& stage) {
    uint64_t edges = 0, visited = 0;
    std::vector<uint64_t> vertices;
    while (frontier_.take(vertices)) {
      for (const uint64_t v : vertices) edges += visit(thread, v, level);
      visited += vertices.size();
      if (!vertices.empty()) stage.progress(vertices.size());
    }
    edges_seen_ += edges;
    vertices_seen_ += visited;
  }

  uint64_t visit(unsigned thread, uint64_t v, uint32_t level) {
    const uint64_t first = graph_.offsets[v], last = graph_.offsets[v + 1];
    for (uint64_t e = first; e < last; ++e) {
      const uint64_t to = graph_.targets[e];
      const std::atomic_ref<uint32_t> mine(levels_[to]);
      if (mine.load(std::memory_order_relaxed) != 0) continue;
      uint32_t unseen = 0;
      if (mine.compare_exchange_strong(unseen, level, std::memory_order_relaxed))
        frontier_.add(thread, to);
    }
    return last - first;
  }

  const CsrView& graph_;
  uint32_t* levels_;
  Frontier& frontier_;
  std::atomic<uint64_t> edges_seen_{0}, vertices_seen_{0};
  unsigned levels_count_ = 0;
};

// By a plain queue.
std::vector<uint32_t> levels_in_memory(const CsrView& graph) {
  std::vector<uint32_t> levels(graph.header.vertices);
  std::vector<uint64_t> queue{graph.header.source};
  levels[graph.header.source] = 1;
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint64_t v = queue[i];
    for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
      const uint64_t to = graph.targets[e];
      if (levels[to] != 0) continue;
      levels[to] = levels[v] + 1;
      queue.push_back(to);
    }
  }
  return levels;
}

// The state: levels, up to a whole page, and then the frontier.
class Bfs : public GraphWorkload {
 public:
  using GraphWorkload::GraphWorkload;

 private:
  uint64_t levels_bytes() const {
    return (answer_bytes() + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  }
  uint64_t state_bytes() const override {
    const uint64_t vertices = header().vertices;
    const unsigned threads = options().threads;
    if (options().is_asynchronous)
      return levels_bytes() + AsynchronousSearch::size_bytes(vertices, threads);
    return levels_bytes() + (options().is_fully_external
                                 ? QueueFrontier::size_bytes(vertices, threads)
                                 : BitmapFrontier::size_bytes(vertices));
  }
  uint64_t answer_bytes() const override { return header().vertices * sizeof(uint32_t); }
  uint64_t hash_answer(std::span<const std::byte> answer) const override {
    return hash_values(std::span(reinterpret_cast<const uint32_t*>(answer.data()),
                                 answer.size() / sizeof(uint32_t)));
  }
  uint64_t reference_answer(const CsrView& graph) const override {
    return hash_values(std::span<const uint32_t>(levels_in_memory(graph)));
  }
  Result<uint64_t> work(const CsrView& graph, std::span<std::byte> state, Stage& stage) override;
  Result<uint64_t> search_by_levels(const CsrView& graph, std::span<std::byte> state,
                                    Stage& stage) const;
  Result<uint64_t> search_asynchronously(const CsrView& graph, std::span<std::byte> state,
                                         Stage& stage) const;
};

Result<uint64_t> Bfs::work(const CsrView& graph, std::span<std::byte> state, Stage& stage) {
  return options().is_asynchronous ? search_asynchronously(graph, state, stage)
                                   : search_by_levels(graph, state, stage);
}

Result<uint64_t> Bfs::search_by_levels(const CsrView& graph, std::span<std::byte> state,
                                       Stage& stage) const {
  const uint64_t vertices = header().vertices;
  const std::span<std::byte> rest = state.subspan(levels_bytes());
  std::unique_ptr<Frontier> frontier;
  if (options().is_fully_external)
    frontier = std::make_unique<QueueFrontier>(rest, vertices, options().threads);
  else
    frontier = std::make_unique<BitmapFrontier>(rest, vertices);
  Search search(graph, reinterpret_cast<uint32_t*>(state.data()), *frontier);
  if (Status s = stage.start(vertices); !s) return s.error();
  search.run(header().source, options().threads, stage);
  stage.stop();
  BENCH_CHECK(search.vertices_seen() <= vertices);
  auto& extra = stage.result().extra;
  extra["levels"] = search.levels_count();
  extra["reached"] = search.vertices_seen();
  return search.edges_seen();
}

// Edges count once, however often a vertex is visited.
Result<uint64_t> Bfs::search_asynchronously(const CsrView& graph, std::span<std::byte> state,
                                            Stage& stage) const {
  const uint64_t vertices = header().vertices;
  AsynchronousSearch search(graph, reinterpret_cast<uint32_t*>(state.data()),
                            state.subspan(levels_bytes()), options().threads);
  if (Status s = stage.start(vertices); !s) return s.error();
  search.run(header().source, [&](uint64_t reached) { stage.progress(reached); });
  stage.stop();
  BENCH_CHECK(search.reached() <= vertices);
  auto& extra = stage.result().extra;
  extra["reached"] = search.reached();
  extra["visits"] = search.visits();
  return search.edges();
}

}  // namespace

std::unique_ptr<Workload> make_bfs(const Options& options) {
  return std::make_unique<Bfs>(options);
}

}  // namespace outcore::bench
