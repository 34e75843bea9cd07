// QueueFrontier: a frontier as two queues in memory that may be mapped: those of the visitors in
// the fully external search of the paper on DI-MMAP (section 6.5.2).
//
// A queue is an array of blocks of 4 KiB (vertex_block.h). A thread appends to a block of its own,
// and takes a fresh one when that is full; so threads share no page while they write. A block is
// visited in ascending order, for the sake of pages, which HavoqGT's visitors have from a priority
// queue. These need no wait between levels (visitor_queues.h); the threads of this one do wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/frontier.h"
#include "bench/vertex_block.h"

namespace outcore::bench {

class QueueFrontier : public Frontier {
 public:
  static uint64_t size_bytes(uint64_t vertices, unsigned threads) {
    return 2 * blocks_max(vertices, threads) * VertexBlock::kBytes;
  }
  // REQUIRES: `memory` is aligned to words, of size_bytes(), and outlives the frontier. What it
  // holds does not matter.
  QueueFrontier(std::span<std::byte> memory, uint64_t vertices, unsigned threads);

  void add(unsigned thread, uint64_t vertex) override;  // REQUIRES: thread < threads
  bool next_level() override;
  bool take(std::vector<uint64_t>& vertices) override;

 private:
  struct Queue {
    uint64_t* blocks = nullptr;
    std::atomic<uint64_t> used{0};  // blocks
  };
  // On a line of the cache of its own.
  struct alignas(64) Writer {
    std::optional<VertexBlock> block;  // of the next level's queue; empty: none yet
  };
  // Each vertex is added once at most, and each thread leaves one block unfilled at most.
  static uint64_t blocks_max(uint64_t vertices, unsigned threads) {
    return VertexBlock::count_for(vertices) + threads;
  }
  VertexBlock fresh_block();

  uint64_t blocks_max_;
  Queue queues_[2];
  unsigned current_ = 0;
  std::atomic<uint64_t> taken_{0};  // blocks
  std::vector<Writer> writers_;
};

}  // namespace outcore::bench
