// VertexSweep: all vertices of a graph, once, in portions that threads take in ascending order.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "bench/stage.h"
#include "bench/threads.h"

namespace outcore::bench {

class VertexSweep {
 public:
  VertexSweep(uint64_t vertices, unsigned threads, Stage& stage)
      : vertices_(vertices), threads_(threads), stage_(stage) {}

  // Calls work(first, last) for parts of 0 … vertices - 1, each once, on all threads; returns when
  // all are done. Tells the stage of each vertex.
  template <typename Work>
  void run(Work work) const {
    std::atomic<uint64_t> next{0};
    on_threads(threads_, [&](unsigned) {
      while (true) {
        const uint64_t first = next.fetch_add(kPortionVertices);
        if (first >= vertices_) return;
        const uint64_t last = std::min(first + kPortionVertices, vertices_);
        work(first, last);
        stage_.progress(last - first);
      }
    });
  }

 private:
  static constexpr uint64_t kPortionVertices = 1024;
  uint64_t vertices_;
  unsigned threads_;
  Stage& stage_;
};

}  // namespace outcore::bench
