// EvictionWorth: what the pages are worth that leave when others come in: how many of them are
// missed again soon after they left, and how many have to be written back first. Any thread; the
// fault path: no lock, a count may be lost.
//
// A few of the pages that came in are remembered, and looked at one by one until they are gone, as
// nobody tells who evicts: in a buffer that is another process.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/prefetch/use_count.h"

namespace outcore::prefetch {

class EvictionWorth {
 public:
  static constexpr uint32_t kSample = 64, kDecisionsALook = 4;

  struct Page {
    std::atomic<uint64_t> cache{0};  // its id and 1; 0: no page
    std::atomic<uint64_t> page{0};
    std::atomic<uint64_t> since{0};  // when it came in, by the caller's clock
  };
  // The page of the sample that is to be looked at with this decision; null: none.
  Page* next() {
    const uint64_t decision = decisions_.fetch_add(1, std::memory_order_relaxed);
    if (decision % kDecisionsALook != 0) return nullptr;
    return &sample_[decision / kDecisionsALook % kSample];
  }
  // A page has left; it has come back soon; it came in unasked, so that nothing is known of it.
  void note_gone() { counts_.watch(); }
  void note_back() { counts_.use(); }
  void forget() { counts_.unwatch(); }

  // So many pages leave, of which so many are written back first.
  void note_leaving(uint32_t pages, uint32_t written) {
    OC_CHECK(written <= pages);
    if (pages == 0) return;
    const uint32_t before = written_.load(std::memory_order_relaxed);
    const uint32_t now = written * kWhole / pages;
    const uint32_t part = std::min(pages, kPagesKept);
    written_.store((before * (kPagesKept - part) + now * part) / kPagesKept,
                   std::memory_order_relaxed);
  }
  // The share of those that leave which is written back first.
  double written_share() const {
    return static_cast<double>(written_.load(std::memory_order_relaxed)) / kWhole;
  }
  // The share of a miss that a page costs which leaves. What comes back in the first half of the
  // time in which others must be used counts for both halves: pages that are touched by chance come
  // back soon or late, those of a loop late, and a loop loses nothing by what it pushes out. Never
  // less than kLeast, where nothing has been seen yet or nothing comes back.
  double share() const {
    const UseCount::Value now = counts_.value();
    const double back = (now.used + kDoubt * kLeast / 2) / (now.watched + kDoubt);
    return std::clamp(2 * back, kLeast, 1.0);
  }

 private:
  static constexpr double kLeast = 0.22, kDoubt = 16;
  static constexpr uint32_t kWhole = 1 << 16;
  static constexpr uint32_t kPagesKept = 1024;  // a moving average over about so many

  std::array<Page, kSample> sample_;
  std::atomic<uint64_t> decisions_{0};
  UseCount counts_;
  std::atomic<uint32_t> written_{0};  // of kWhole
};

}  // namespace outcore::prefetch
