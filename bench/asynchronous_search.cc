#include "bench/asynchronous_search.h"

#include "bench/check.h"
#include "bench/options.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

uint64_t states_bytes(uint64_t vertices) {
  return (vertices + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
}

}  // namespace

uint64_t AsynchronousSearch::size_bytes(uint64_t vertices, unsigned threads) {
  return states_bytes(vertices) + VisitorQueues::size_bytes(vertices, threads);
}

AsynchronousSearch::AsynchronousSearch(const CsrView& graph, uint32_t* levels,
                                       std::span<std::byte> memory, unsigned threads)
    : graph_(graph),
      levels_(levels),
      states_(reinterpret_cast<uint8_t*>(memory.data())),
      threads_(threads),
      queues_(memory.subspan(states_bytes(graph.header.vertices)), graph.header.vertices, threads) {
  BENCH_CHECK(memory.size() >= size_bytes(graph.header.vertices, threads));
}

void AsynchronousSearch::run(uint64_t source, const std::function<void(uint64_t)>& progress) {
  BENCH_CHECK(source < graph_.header.vertices && visits_ == 0);
  levels_[source] = 1;
  states_[source] = kQueued;
  queues_.add(0, source, 1);
  on_threads(threads_, [&](unsigned thread) { work(thread, progress); });
  BENCH_CHECK(reached_ != 0 && reached_ <= visits_);
}

void AsynchronousSearch::work(unsigned thread, const std::function<void(uint64_t)>& progress) {
  Counts all;
  std::vector<uint64_t> vertices;
  while (queues_.take(thread, vertices)) {
    Counts counts;
    for (const uint64_t vertex : vertices) visit(thread, vertex, counts);
    progress(counts.reached);
    all.reached += counts.reached;
    all.edges += counts.edges;
    all.visits += counts.visits;
  }
  reached_ += all.reached;
  edges_ += all.edges;
  visits_ += all.visits;
}

// Who lowers a level then looks whether the vertex is queued; here the vertex is taken out of the
// queue first, and its level read then. So one of the two sees the other, and no level is missed.
void AsynchronousSearch::visit(unsigned thread, uint64_t vertex, Counts& counts) {
  const uint8_t before = std::atomic_ref(states_[vertex]).exchange(kVisited);
  BENCH_CHECK((before & kQueued) != 0);
  const uint32_t level = std::atomic_ref(levels_[vertex]).load();
  const uint64_t first = graph_.offsets[vertex], last = graph_.offsets[vertex + 1];
  for (uint64_t e = first; e < last; ++e) {
    const uint64_t to = graph_.targets[e];
    if (!lower_level(to, level + 1)) continue;
    const uint8_t state = std::atomic_ref(states_[to]).fetch_or(kQueued);
    if ((state & kQueued) == 0) queues_.add(thread, to, level + 1);
  }
  ++counts.visits;
  if ((before & kVisited) != 0) return;
  ++counts.reached;
  counts.edges += last - first;
}

bool AsynchronousSearch::lower_level(uint64_t vertex, uint32_t level) {
  const std::atomic_ref<uint32_t> mine(levels_[vertex]);
  uint32_t now = mine.load(std::memory_order_relaxed);
  while (now == 0 || now > level)
    if (mine.compare_exchange_weak(now, level)) return true;
  return false;
}

}  // namespace outcore::bench
