// ReaderCount: counts the threads that missed pages recently. Each may have a part of the memory
// filled with prefetched pages; more would be evicted before it is read. Any thread; the fault
// path.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::prefetch {

class ReaderCount {
 public:
  // Notes that a thread missed a page. Returns how many threads did so in this round of misses or
  // in the previous one, at least 1. *round belongs to the thread: the round in which it was last
  // counted.
  uint32_t note(uint64_t* round) {
    const uint64_t now = misses_.fetch_add(1, std::memory_order_relaxed) / kRoundMisses + 1;
    std::atomic<uint64_t>& here = counted_[now % kRounds];
    OC_ASSERT(*round <= now);
    uint64_t seen = here.load(std::memory_order_relaxed);
    const uint64_t fresh = now << 32;
    if (seen < fresh && here.compare_exchange_strong(seen, fresh, std::memory_order_relaxed))
      seen = fresh;
    if (*round != now) {
      *round = now;
      seen = here.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    const uint64_t before = counted_[(now - 1) % kRounds].load(std::memory_order_relaxed);
    const uint64_t of_before = before >> 32 == now - 1 ? before & UINT32_MAX : 0;
    return static_cast<uint32_t>(std::max({seen & UINT32_MAX, of_before, uint64_t{1}}));
  }

 private:
  static constexpr uint64_t kRoundMisses = 256, kRounds = 4;

  std::atomic<uint64_t> misses_{0};
  // For each of the last rounds: its number in the upper half, the number of threads in the lower.
  std::atomic<uint64_t> counted_[kRounds] = {};
};

}  // namespace outcore::prefetch
