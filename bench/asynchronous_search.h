// AsynchronousSearch: a breadth-first search whose threads do not wait for each other between
// levels, as HavoqGT's in the paper on DI-MMAP (section 4.2). A vertex that is reached again on a
// shorter way gets a lower level, and is visited again; when nothing is left to visit, all levels
// are those of a search by levels.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/csr.h"
#include "bench/visitor_queues.h"

namespace outcore::bench {

class AsynchronousSearch {
 public:
  // What it keeps beside the levels: a byte for each vertex, and queues.
  static uint64_t size_bytes(uint64_t vertices, unsigned threads);
  // `levels`: one a vertex; 0: not reached. REQUIRES: levels and `memory` (size_bytes(), aligned to
  // pages) are zeros, and outlive the search, as the graph does.
  AsynchronousSearch(const CsrView& graph, uint32_t* levels, std::span<std::byte> memory,
                     unsigned threads);

  // Called once. The source has level 1. progress(n): n vertices more have been visited for the
  // first time; by any thread.
  void run(uint64_t source, const std::function<void(uint64_t)>& progress);

  // After run():
  uint64_t reached() const { return reached_; }  // vertices
  uint64_t edges() const { return edges_; }      // of these, each once
  uint64_t visits() const { return visits_; }    // with those that came too early

 private:
  // A vertex's byte. It is in a queue; it has been visited.
  static constexpr uint8_t kQueued = 1, kVisited = 2;
  struct Counts {
    uint64_t reached = 0, edges = 0, visits = 0;
  };
  void work(unsigned thread, const std::function<void(uint64_t)>& progress);
  void visit(unsigned thread, uint64_t vertex, Counts& counts);
  // Whether the vertex had none, or a higher one.
  bool lower_level(uint64_t vertex, uint32_t level);

  const CsrView& graph_;
  uint32_t* const levels_;
  uint8_t* const states_;
  const unsigned threads_;
  VisitorQueues queues_;
  std::atomic<uint64_t> reached_{0}, edges_{0}, visits_{0};
};

}  // namespace outcore::bench
