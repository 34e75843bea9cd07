// components: which vertices of a graph are connected (by edges of either direction). One sweep
// over all edges joins sets; the answer of a vertex is the smallest of those it is connected with.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/check.h"
#include "bench/disjoint_sets.h"
#include "bench/graph_workload.h"
#include "bench/vertex_sweep.h"

namespace outcore::bench {
namespace {

// By a plain union-find of one thread, with the ways compressed.
std::vector<uint64_t> components_in_memory(const CsrView& graph) {
  std::vector<uint64_t> parents(graph.header.vertices);
  std::iota(parents.begin(), parents.end(), 0);
  const auto find = [&](uint64_t v) {
    uint64_t root = v;
    while (parents[root] != root) root = parents[root];
    while (parents[v] != root) v = std::exchange(parents[v], root);
    return root;
  };
  for (uint64_t v = 0; v < parents.size(); ++v) {
    for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e) {
      const uint64_t a = find(v), b = find(graph.targets[e]);
      parents[std::max(a, b)] = std::min(a, b);
    }
  }
  for (uint64_t v = 0; v < parents.size(); ++v) parents[v] = find(v);
  return parents;
}

// The state: the parent of each vertex, at the end the smallest of its component.
class Components : public GraphWorkload {
 public:
  using GraphWorkload::GraphWorkload;

 private:
  uint64_t state_bytes() const override { return answer_bytes(); }
  uint64_t answer_bytes() const override { return header().vertices * sizeof(uint64_t); }
  uint64_t hash_answer(std::span<const std::byte> answer) const override {
    return hash_words(answer);
  }
  uint64_t reference_answer(const CsrView& graph) const override {
    return hash_values(std::span<const uint64_t>(components_in_memory(graph)));
  }
  Result<uint64_t> work(const CsrView& graph, std::span<std::byte> state, Stage& stage) override;
};

Result<uint64_t> Components::work(const CsrView& graph, std::span<std::byte> state, Stage& stage) {
  static constexpr uint64_t kSweeps = 3;
  const uint64_t vertices = header().vertices;
  DisjointSets sets({reinterpret_cast<uint64_t*>(state.data()), vertices});
  std::atomic<uint64_t> components{0};
  const VertexSweep sweep(vertices, options().threads, stage);
  if (Status s = stage.start(kSweeps * vertices); !s) return s.error();
  sweep.run([&](uint64_t first, uint64_t last) {
    for (uint64_t v = first; v < last; ++v) sets.reset(v);
  });
  sweep.run([&](uint64_t first, uint64_t last) {
    for (uint64_t v = first; v < last; ++v)
      for (uint64_t e = graph.offsets[v]; e < graph.offsets[v + 1]; ++e)
        sets.join(v, graph.targets[e]);
  });
  sweep.run([&](uint64_t first, uint64_t last) {
    uint64_t roots = 0;
    for (uint64_t v = first; v < last; ++v) roots += sets.flatten(v) == v;
    components += roots;
  });
  stage.stop();
  BENCH_CHECK(components.load() != 0 && components.load() <= vertices);
  stage.result().extra["components"] = components.load();
  return header().edges;
}

}  // namespace

std::unique_ptr<Workload> make_components(const Options& options) {
  return std::make_unique<Components>(options);
}

}  // namespace outcore::bench
