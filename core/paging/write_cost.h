// WriteCost: how long it takes to write back a page, one after the other, as a thread of the
// program does that evicts pages itself. Of all stores together: whose pages leave is the policy's
// choice. Measured from those writes; any thread; the fault path: a sample may be lost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::paging {

class WriteCost {
 public:
  enum class Level : uint8_t { kUnknown, kLow, kHigh };
  // An interrupt of another processor costs more on a virtual machine.
  static constexpr uint64_t kLowNs = 20'000;
  static constexpr uint64_t kForgottenNs = 10'000'000'000;
  static constexpr uint64_t kPagesLeast = 16;

  // So many pages were written in that time.
  void note(uint64_t pages, uint64_t took_ns, uint64_t now_ns) {
    OC_CHECK(pages != 0);
    const bool is_anew = is_forgotten(now_ns);
    const uint64_t before = is_anew ? 0 : ns_.load(std::memory_order_relaxed);
    const uint64_t pages_before = is_anew ? 0 : pages_.load(std::memory_order_relaxed);
    const uint64_t sample = std::max<uint64_t>(took_ns / pages, 1);
    // The thread may have been off the processor: of the first ones the least counts, and one that
    // is far out counts as four times the average.
    uint64_t average = (before * 7 + std::min(sample, 4 * before)) / 8;
    if (pages_before < kPagesLeast) average = before == 0 ? sample : std::min(before, sample);
    ns_.store(std::max<uint64_t>(average, 1), std::memory_order_relaxed);
    noted_ns_.store(now_ns, std::memory_order_relaxed);
    pages_.store(pages_before + pages, std::memory_order_relaxed);
  }
  // Unknown while few were measured, and if that was long ago.
  Level level(uint64_t now_ns) const {
    if (is_forgotten(now_ns) || pages_.load(std::memory_order_relaxed) < kPagesLeast)
      return Level::kUnknown;
    return ns_.load(std::memory_order_relaxed) < kLowNs ? Level::kLow : Level::kHigh;
  }

 private:
  bool is_forgotten(uint64_t now_ns) const {
    const uint64_t noted_ns = noted_ns_.load(std::memory_order_relaxed);
    return now_ns - std::min(now_ns, noted_ns) > kForgottenNs;
  }

  std::atomic<uint64_t> ns_{0};        // a moving average
  std::atomic<uint64_t> pages_{0};     // of how many
  std::atomic<uint64_t> noted_ns_{0};  // when it was changed
};

}  // namespace outcore::paging
