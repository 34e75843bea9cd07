// EvictionWorth: estimates what is lost when pages leave to make room for others: how many of them
// are missed again soon after they left, and how many have to be written back first. Any thread;
// the fault path: no lock, a count may be lost.
//
// A sample of the pages that came in is checked one by one until they have left. (Evictions are not
// reported here: in a buffer, another process evicts.)
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
    std::atomic<uint64_t> cache{0};  // its id + 1; 0: no page
    std::atomic<uint64_t> page{0};
    std::atomic<uint64_t> since{0};  // when it came in, by the caller's clock
  };
  // The page of the sample that is to be checked at this decision; nullptr: none.
  Page* next() {
    const uint64_t decision = decisions_.fetch_add(1, std::memory_order_relaxed);
    if (decision % kDecisionsALook != 0) return nullptr;
    return &sample_[decision / kDecisionsALook % kSample];
  }
  // A page of the sample has left; has come back soon; came in without a miss, so that it does not
  // count.
  void note_gone() { counts_.watch(); }
  void note_back() { counts_.use(); }
  void forget() { counts_.unwatch(); }

  // `pages` pages leave, of which `written` are written back first.
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
  // What a page that leaves costs, as a share of a miss. Only pages that come back in the first
  // half of the time in which watched pages must be used are counted, and each counts twice: pages
  // that are touched at random come back early or late alike, but pages of a loop come back late,
  // and a loop loses nothing by what it pushes out. At least kLeast, also where nothing was
  // observed yet.
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
