// pagerank: the ranks of a graph's vertices after a number of passes (Brin and Page 1998), each of
// which reads all edges in order and adds to ranks at random.
//
// Ranks are fixed-point numbers, of which the mean is about fixed_one(). Sums of integers do not
// depend on their order: the answer is the same, bit by bit, for any number of threads.
#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <utility>
#include <vector>

#include "bench/check.h"
#include "bench/graph_workload.h"
#include "bench/vertex_sweep.h"

namespace outcore::bench {
namespace {

// A rank of 1: all ranks together stay below 2^63.
uint64_t fixed_one(uint64_t vertices) {
  static constexpr uint64_t kOneMax = uint64_t{1} << 32, kSumMax = uint64_t{1} << 62;
  return std::min(kOneMax, kSumMax / std::bit_ceil(vertices));
}

// The damping factor is 0.85: so much of a rank goes along the edges, and the rest to all.
uint64_t damped(uint64_t rank) { return rank / 20 * 17; }
uint64_t undamped(uint64_t one) { return one / 20 * 3; }

// By one thread, with one array for each pass.
std::vector<uint64_t> ranks_in_memory(const CsrView& graph, unsigned passes) {
  const uint64_t vertices = graph.header.vertices, one = fixed_one(vertices);
  std::vector<uint64_t> ranks(vertices, one);
  for (unsigned pass = 0; pass < passes; ++pass) {
    uint64_t dangling = 0;
    std::vector<uint64_t> next(vertices);
    for (uint64_t v = 0; v < vertices; ++v) {
      const uint64_t degree = graph.offsets[v + 1] - graph.offsets[v];
      if (degree == 0) dangling += damped(ranks[v]);
      for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
        next[graph.targets[e]] += damped(ranks[v]) / degree;
    }
    for (uint64_t& rank : next) rank += undamped(one) + dangling / vertices;
    ranks = std::move(next);
  }
  return ranks;
}

// The ranks of one pass after another. An array holds what came along edges; what all vertices get
// alike is one number beside it. So an array of zeros is where a pass can begin to add, and the
// sweep that reads the ranks of the last pass leaves zeros for the pass after the next.
class Ranks {
 public:
  Ranks(const CsrView& graph, uint64_t* current, uint64_t* next)
      : graph_(graph),
        vertices_(graph.header.vertices),
        one_(fixed_one(vertices_)),
        current_(current),
        next_(next),
        of_all_(one_) {}

  void pass(const VertexSweep& sweep) {
    std::atomic<uint64_t> dangling{0};
    sweep.run([&](uint64_t first, uint64_t last) {
      uint64_t dangling_here = 0;
      for (uint64_t v = first; v < last; ++v) dangling_here += push(v);
      dangling += dangling_here;
    });
    of_all_ = undamped(one_) + dangling.load() / vertices_;
    std::swap(current_, next_);
  }

  // Writes the ranks themselves to the array of the last pass; the highest of them, of a mean of 1.
  double finish(const VertexSweep& sweep) {
    std::atomic<uint64_t> highest{0};
    sweep.run([&](uint64_t first, uint64_t last) {
      uint64_t highest_here = 0;
      for (uint64_t v = first; v < last; ++v)
        highest_here = std::max(highest_here, current_[v] += of_all_);
      uint64_t known = highest.load();
      while (known < highest_here && !highest.compare_exchange_weak(known, highest_here)) continue;
    });
    return static_cast<double>(highest.load()) / static_cast<double>(one_);
  }

 private:
  // Along the edges of one vertex; what it has for all, because it has none.
  uint64_t push(uint64_t v) {
    const uint64_t rank = damped(current_[v] + of_all_);
    if (current_[v] != 0) current_[v] = 0;
    const uint64_t first = graph_.offsets[v], last = graph_.offsets[v + 1];
    if (first == last) return rank;
    const uint64_t share = rank / (last - first);
    for (uint64_t e = first; e < last; ++e)
      std::atomic_ref(next_[graph_.targets[e]]).fetch_add(share, std::memory_order_relaxed);
    return 0;
  }

  const CsrView& graph_;
  uint64_t vertices_, one_;
  uint64_t *current_, *next_;
  uint64_t of_all_;  // added to each number of current_
};

// The state: two arrays of a number for each vertex; the last pass is in the first of them.
class PageRank : public GraphWorkload {
 public:
  explicit PageRank(const Options& options)
      : GraphWorkload(options), passes_(options.loops == 0 ? kPageRankPasses : options.loops) {}

 private:
  uint64_t state_bytes() const override { return 2 * answer_bytes(); }
  uint64_t answer_bytes() const override { return header().vertices * sizeof(uint64_t); }
  uint64_t hash_answer(std::span<const std::byte> answer) const override {
    return hash_words(answer);
  }
  uint64_t reference_answer(const CsrView& graph) const override {
    return hash_values(std::span<const uint64_t>(ranks_in_memory(graph, passes_)));
  }
  Result<uint64_t> work(const CsrView& graph, std::span<std::byte> state, Stage& stage) override;

  unsigned passes_;
};

Result<uint64_t> PageRank::work(const CsrView& graph, std::span<std::byte> state, Stage& stage) {
  const uint64_t vertices = header().vertices;
  auto* const first = reinterpret_cast<uint64_t*>(state.data());
  auto* const second = first + vertices;
  const bool is_even = passes_ % 2 == 0;
  Ranks ranks(graph, is_even ? first : second, is_even ? second : first);
  const VertexSweep sweep(vertices, options().threads, stage);
  if (Status s = stage.start((passes_ + 1) * vertices); !s) return s.error();
  for (unsigned pass = 0; pass < passes_; ++pass) ranks.pass(sweep);
  const double highest = ranks.finish(sweep);
  stage.stop();
  stage.result().extra["rank_max"] = highest;
  return header().edges * passes_;
}

}  // namespace

std::unique_ptr<Workload> make_pagerank(const Options& options) {
  return std::make_unique<PageRank>(options);
}

}  // namespace outcore::bench
