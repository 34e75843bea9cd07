#include "bench/disjoint_sets.h"

#include <atomic>
#include <utility>

#include "bench/check.h"

namespace outcore::bench {

uint64_t DisjointSets::root(uint64_t vertex) {
  BENCH_CHECK(vertex < parents_.size());
  while (true) {
    const std::atomic_ref<uint64_t> mine(parents_[vertex]);
    uint64_t parent = mine.load(std::memory_order_relaxed);
    if (parent == vertex) return vertex;
    const uint64_t above = std::atomic_ref(parents_[parent]).load(std::memory_order_relaxed);
    // Where another thread was faster, its way is as short.
    if (above != parent)
      (void)mine.compare_exchange_strong(parent, above, std::memory_order_relaxed);
    vertex = above;
  }
}

void DisjointSets::join(uint64_t a, uint64_t b) {
  while (true) {
    a = root(a);
    b = root(b);
    if (a == b) return;
    if (a < b) std::swap(a, b);
    // Fails if the larger is no root any more.
    uint64_t larger = a;
    if (std::atomic_ref(parents_[a]).compare_exchange_strong(larger, b, std::memory_order_relaxed))
      return;
  }
}

uint64_t DisjointSets::flatten(uint64_t vertex) {
  const uint64_t smallest = root(vertex);
  const std::atomic_ref<uint64_t> mine(parents_[vertex]);
  // A page that has it already is not written.
  if (mine.load(std::memory_order_relaxed) != smallest)
    mine.store(smallest, std::memory_order_relaxed);
  return smallest;
}

}  // namespace outcore::bench
