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
    return static_cast<uint32_t>(std::max({seen & UINT32_MAX, counted_in(now - 1), uint64_t{1}}));
  }

  // Whether only one thread missed pages in this round and the previous one.
  bool is_one() const {
    const uint64_t now = misses_.load(std::memory_order_relaxed) / kRoundMisses + 1;
    return std::max(counted_in(now), counted_in(now - 1)) == 1;
  }

  uint64_t misses() const { return misses_.load(std::memory_order_relaxed); }  // noted so far

  // The same number as note() returns, without noting a miss.
  uint32_t count() const {
    const uint64_t now = misses_.load(std::memory_order_relaxed) / kRoundMisses + 1;
    return static_cast<uint32_t>(std::max({counted_in(now), counted_in(now - 1), uint64_t{1}}));
  }

 private:
  uint64_t counted_in(uint64_t round) const {
    const uint64_t word = counted_[round % kRounds].load(std::memory_order_relaxed);
    return word >> 32 == round ? word & UINT32_MAX : 0;
  }

  static constexpr uint64_t kRoundMisses = 256, kRounds = 4;

  std::atomic<uint64_t> misses_{0};
  // For each of the last rounds: its number in the upper half, the number of threads in the lower.
  std::atomic<uint64_t> counted_[kRounds] = {};
};

}  // namespace outcore::prefetch
