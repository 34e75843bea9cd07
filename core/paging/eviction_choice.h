// EvictionChoice: chooses which thread evicts pages while only one thread misses pages: that thread
// itself, or the keepers. Where each written page has to be protected, a keeper that runs in
// parallel interrupts the thread's processor, and the thread the keeper's; but it writes pages back
// while the thread goes on, and pages that are touched meanwhile are rescued. Which way is quicker
// depends on the program. So each is tried for a while, and again from time to time, and the one
// that took less time lately is chosen.
//
// Compared is the time per event: a miss, or a rescue (which would be a miss without keepers). Any
// thread; the fault path: a thread that comes while another one decides gets the previous choice.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"

namespace outcore::paging {

class EvictionChoice {
 public:
  // How many events after a change are not measured; how many are measured together; and after how
  // many such periods the other way is tried again, which doubles each time that it was slower.
  static constexpr uint64_t kSettling = 64, kPeriod = 512;
  static constexpr uint32_t kRetryFirst = 8, kRetryMost = 64;

  // Whether the thread is to evict pages itself. `events`: how many there were so far.
  bool is_itself(uint64_t events, uint64_t now_ns) {
    if (!is_busy_.exchange(true, std::memory_order_acquire)) {
      note(events, now_ns);
      is_busy_.store(false, std::memory_order_release);
    }
    return way_.load(std::memory_order_relaxed) == kItself;
  }
  // Evictions did not depend on the choice for a while: the present measurement is dropped, and a
  // trial ends.
  void interrupt() {
    if (is_interrupted_.load(std::memory_order_relaxed)) return;
    is_interrupted_.store(true, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kRetryAtOnce = 1;  // for a way that was never tried
  enum Way : uint32_t { kItself, kKeepers };
  static Way other_than(Way way) { return way == kItself ? kKeepers : kItself; }

  void note(uint64_t events, uint64_t now_ns) {
    if (is_interrupted_.load(std::memory_order_relaxed)) {
      is_interrupted_.store(false, std::memory_order_relaxed);
      // A trial that was interrupted is tried again no sooner than others.
      if (way_.load(std::memory_order_relaxed) != chosen_) {
        periods_ = 0;
        retry_ = std::max(retry_, kRetryFirst);
        way_.store(chosen_, std::memory_order_relaxed);
      }
      settled_at_ = events + kSettling;
      start_events_ = 0;
    }
    if (events < settled_at_) return;
    if (start_events_ == 0 || events < start_events_ || now_ns < start_ns_) {
      start_events_ = std::max<uint64_t>(events, 1), start_ns_ = now_ns;
      return;
    }
    if (events - start_events_ < kPeriod) return;
    const Way way = way_.load(std::memory_order_relaxed);
    blend(way, (now_ns - start_ns_) / (events - start_events_));
    start_events_ = events, start_ns_ = now_ns;
    const Way next = decide(way);
    if (next == way) return;
    way_.store(next, std::memory_order_relaxed);
    settled_at_ = events + kSettling;
    start_events_ = 0;
  }
  // A moving average. The thread may have been off the processor, or have rested: a period that is
  // far out counts as twice the average, and one that is far below it shows that the average was
  // too high.
  void blend(Way way, uint64_t ns) {
    uint64_t& average = ns_[way];
    ns = std::max<uint64_t>(ns, 1);
    const bool is_anew = average == 0 || ns < average / 2;
    average = is_anew ? ns : (average * 3 + std::min(ns, average * 2)) / 4;
    OC_ASSERT(average != 0);
  }
  Way decide(Way way) {
    const Way other = other_than(way);
    if (way != chosen_) {  // it was a trial
      periods_ = 0;
      if (ns_[way] < ns_[chosen_]) {
        chosen_ = way;
        retry_ = kRetryFirst;
      } else {
        retry_ = std::clamp(2 * retry_, kRetryFirst, kRetryMost);
      }
      return chosen_;
    }
    OC_ASSERT(retry_ >= kRetryAtOnce && retry_ <= kRetryMost);
    if (++periods_ >= retry_) return other;
    // The other way was quicker when it was measured last.
    if (ns_[other] != 0 && ns_[other] < ns_[way] - ns_[way] / 16) {
      chosen_ = other;
      periods_ = 0;
      retry_ = kRetryFirst;
    }
    return chosen_;
  }

  std::atomic<Way> way_{kItself};
  std::atomic<bool> is_busy_{false}, is_interrupted_{false};
  // Used by the thread that has set is_busy_.
  std::array<uint64_t, 2> ns_{};  // an event of each way; 0: not measured yet
  Way chosen_ = kItself;
  uint32_t periods_ = 0, retry_ = kRetryAtOnce;
  uint64_t settled_at_ = 0, start_events_ = 0, start_ns_ = 0;  // start_events_ 0: not begun
};

}  // namespace outcore::paging
