// VisitorQueues: what a level-asynchronous search has still to visit: a queue for each thread, in
// memory that may be mapped. After the visitor queues of HavoqGT, in the paper on DI-MMAP (sections
// 4.2 and 5.4).
//
// No thread waits for a level to end: each goes on to its own next one, and takes from another only
// when it has nothing left. So a vertex may be visited at a level that is not its last.
//
// The memory is blocks of 4 KiB (vertex_block.h). A thread fills two blocks of its own, one with
// what is as near as what it visits, one with what is farther; full ones others may take. A block
// is visited in ascending order, for the sake of pages, as HavoqGT's priority queue has it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "bench/vertex_block.h"

namespace outcore::bench {

class VisitorQueues {
 public:
  static uint64_t size_bytes(uint64_t vertices, unsigned threads) {
    return blocks_max(vertices, threads) * VertexBlock::kBytes;
  }
  // REQUIRES: `memory` is aligned to words, of size_bytes(), and outlives the queues. What it holds
  // does not matter.
  VisitorQueues(std::span<std::byte> memory, uint64_t vertices, unsigned threads);

  // `vertex` is to be visited; its level, as it is now, is `level`. REQUIRES: it is in no queue;
  // two calls with the same `thread` are not at the same time.
  void add(unsigned thread, uint64_t vertex, uint32_t level);
  // The next portion to visit, ascending, never empty: of the thread's own queue the nearest, else
  // of another's. Waits while there is none, but some thread is at work, which may add some. False:
  // all is visited. What was taken before is visited. Each thread calls it until it is false.
  bool take(unsigned thread, std::vector<uint64_t>& vertices);

 private:
  using Block = uint32_t;  // its number
  static constexpr Block kNone = ~Block{0};

  // Of one distance: a block that is being filled, and full ones.
  struct Part {
    Block open = kNone;  // of the thread alone
    std::vector<Block> full;
  };
  // On a line of the cache of its own.
  struct alignas(64) Queue {
    uint32_t level = 0;  // of what it visits: what is not above it is near. Of the thread alone
    uint32_t next_level = kNoLevel;  // the lowest of what is far. Of the thread alone
    Part near, far;
  };
  static constexpr uint32_t kNoLevel = ~uint32_t{0};

  // Each vertex is in one queue at most, and each thread leaves two blocks unfilled at most, and
  // empties one.
  static uint64_t blocks_max(uint64_t vertices, unsigned threads) {
    return VertexBlock::count_for(vertices) + uint64_t{3} * threads;
  }
  VertexBlock at(Block block) const { return {words_, block}; }
  // These REQUIRE the lock.
  Block take_own(Queue& queue);
  Block take_from_others(unsigned thread);

  uint64_t* const words_;
  std::vector<Queue> queues_;
  std::mutex mutex_;  // for what is below, and all `full`
  std::condition_variable news_;
  std::vector<Block> free_;
  unsigned waiting_ = 0;
  bool is_done_ = false;
};

}  // namespace outcore::bench
