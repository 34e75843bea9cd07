// WriteCost: what it takes to write back a page of one store, one after the other, as a thread of
// the program does that evicts pages itself. Measured while it does; any thread; the fault path: a
// sample may be lost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::paging {

class WriteCost {
 public:
  // Less than the keeper's thread costs who waits for its interrupts.
  static constexpr uint64_t kLowNs = 15'000;

  // So many bytes were written by so many requests.
  void note(uint32_t requests, uint64_t bytes, uint64_t ns) {
    OC_CHECK(requests != 0);
    const uint64_t pages = std::max<uint64_t>(bytes / base::kSystemPage, requests);
    const uint64_t before = ns_.load(std::memory_order_relaxed);
    // One that is far out (the thread was off the processor) counts as four times the average.
    const uint64_t sample = std::min(ns / pages, 4 * std::max<uint64_t>(before, kLowNs / 2));
    ns_.store((before * 7 + sample) / 8, std::memory_order_relaxed);
  }
  // Also before anything was written.
  bool is_low() const { return ns_.load(std::memory_order_relaxed) < kLowNs; }

 private:
  std::atomic<uint64_t> ns_{0};  // a moving average
};

}  // namespace outcore::paging
