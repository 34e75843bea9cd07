// TouchRuns: how many neighbours a touch of a page in memory is worth, estimated from earlier
// touches. A program that touches one page after the other, up or down, gets access to 2, 4, 8 and
// then 16 at once; otherwise only to the page that it touches.
//
// Hints: threads that use it at the same time may lose a run. The fault path; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::paging {

class TouchRuns {
 public:
  static constexpr uint64_t kPagesMax = 16;
  struct Run {
    uint64_t first = 0, end = 0;
  };

  // The page is touched, and will be let in with what this returns of its neighbours: some of them
  // may lie beyond the end of the file. REQUIRES: page < 2^56.
  Run next(uint64_t page) {
    for (std::atomic<uint64_t>& place : places_) {
      uint64_t seen = place.load(std::memory_order_relaxed);
      const Run run = run_of(seen);
      if (run.first == run.end || (page != run.end && page + 1 != run.first)) continue;
      const uint64_t count = std::min(2 * (run.end - run.first), kPagesMax);
      const Run after = page == run.end ? Run{page, page + count}
                                        : Run{page - std::min(page, count - 1), page + 1};
      if (place.compare_exchange_strong(seen, word_of(after), std::memory_order_relaxed))
        return after;
    }
    const Run alone{page, page + 1};
    places_[oldest_.fetch_add(1, std::memory_order_relaxed) % places_.size()].store(
        word_of(alone), std::memory_order_relaxed);
    return alone;
  }

 private:
  static uint64_t word_of(const Run& run) {
    OC_ASSERT(run.first < run.end && run.end - run.first <= kPagesMax);
    OC_ASSERT(run.first < uint64_t{1} << 56);
    return run.first << 8 | (run.end - run.first);
  }
  static Run run_of(uint64_t word) { return {word >> 8, (word >> 8) + (word & 0xFF)}; }

  std::array<std::atomic<uint64_t>, 8> places_{};  // 0: none
  std::atomic<uint32_t> oldest_{0};
};

}  // namespace outcore::paging
