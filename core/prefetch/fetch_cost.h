// FetchCost: what a miss costs in one store: the time until a single page is there, and the time
// that each further page of the same transfer adds. Measured continuously, from the misses
// themselves. Any thread; the fault path: no lock, a sample may be lost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::prefetch {

class FetchCost {
 public:
  // Assumed until it is measured: a present-day disk, 60 µs for a read and 1 GiB/s.
  static constexpr uint64_t kFirstMissNs = 60'000, kFirstPageNs = 4'000;
  static constexpr uint64_t kPageNsMin = 200;

  // Sets the time of a miss that cannot be measured here: the kernel's part of the fault, and the
  // signal, or the switches to an event thread and back. Called before anything else.
  void set_trap_ns(uint64_t ns) { trap_ns_ = ns; }
  // A miss brought in this many pages by one transfer, and took this long.
  void note(uint32_t pages, uint64_t ns) {
    OC_CHECK(pages != 0);
    if (pages == 1) {
      blend(miss_ns_, ns, kFirstMissNs);
      return;
    }
    const uint64_t alone = handling_ns();
    const uint64_t more = ns > alone ? (ns - alone) / (pages - 1) : 0;
    blend(page_ns_, std::max(more, kPageNsMin), kFirstPageNs);
  }
  uint64_t miss_ns() const { return trap_ns_ + handling_ns(); }
  // The time of a further page in a transfer. A value near that of a whole miss was measured while
  // something else used the processor or the device, and is limited to three quarters of it.
  uint64_t page_ns() const {
    return std::clamp<uint64_t>(value(page_ns_, kFirstPageNs), 1,
                                std::max<uint64_t>(miss_ns() * 3 / 4, 1));
  }

 private:
  uint64_t handling_ns() const { return value(miss_ns_, kFirstMissNs); }
  static uint64_t value(const std::atomic<uint64_t>& measured, uint64_t first) {
    const uint64_t ns = measured.load(std::memory_order_relaxed);
    return ns == 0 ? first : ns;
  }
  // A moving average over some 8 samples. A sample that is far larger (the thread was off the
  // processor) counts as four times the average.
  static void blend(std::atomic<uint64_t>& average, uint64_t ns, uint64_t first) {
    const uint64_t before = value(average, first);
    OC_ASSERT(before != 0);
    const uint64_t sample = std::clamp<uint64_t>(ns, 1, before * 4);
    average.store(std::max<uint64_t>((before * 7 + sample) / 8, 1), std::memory_order_relaxed);
  }

  uint64_t trap_ns_ = 0;
  std::atomic<uint64_t> miss_ns_{0}, page_ns_{0};  // 0: not measured yet
};

}  // namespace outcore::prefetch
