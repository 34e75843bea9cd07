// WriteStall: nothing can leave memory because the stores are full, and when that is tried again.
//
// Turns that free nothing are counted in the pages they looked at. Once that is as many as there
// are, and stores said that they are full, fills that need room fail at once instead of waiting,
// and turns are tried again less and less often, until one frees something or something was stored.
// The fault path; any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::paging {

class WriteStall {
 public:
  static constexpr uint64_t kFirstNs = 20'000'000, kNsMax = 1'000'000'000;

  static bool is_of_space(int error) { return error == -ENOSPC || error == -EDQUOT; }

  // What a program can do about a fill that failed, where that is known.
  static const char* remedy(int error) {
    return is_of_space(error) ? "written pages that cannot be stored fill the budget: make room in "
                                "their store and flush, or give a larger budget"
                              : "";
  }

  // ENOSPC or EDQUOT negated: nothing can leave, for that reason. 0 otherwise.
  int error() const { return error_.load(std::memory_order_acquire); }

  // False: a turn would be in vain. True lets one thread through, when it is time again.
  bool may_try() {
    if (error() == 0) return true;
    const uint64_t now_ns = os::now_ns();
    uint64_t next_ns = next_ns_.load(std::memory_order_acquire);
    if (now_ns < next_ns) return false;
    const uint64_t pause_ns = std::min(2 * pause_ns_.load(std::memory_order_relaxed), kNsMax);
    if (!next_ns_.compare_exchange_strong(next_ns, now_ns + pause_ns)) return false;
    pause_ns_.store(pause_ns, std::memory_order_relaxed);
    return true;
  }

  // A turn has looked at so many of all the pages and freed none; a write-back of it failed with
  // the error, if one did.
  void note_vain(uint64_t looked_at, uint64_t all, int error) {
    if (is_of_space(error)) seen_.store(error, std::memory_order_relaxed);
    OC_ASSERT(error <= 0);
    const uint64_t sum = looked_at_.fetch_add(looked_at, std::memory_order_relaxed) + looked_at;
    const int seen = seen_.load(std::memory_order_relaxed);
    if (seen == 0 || sum < all || this->error() != 0) return;
    pause_ns_.store(kFirstNs, std::memory_order_relaxed);
    next_ns_.store(os::now_ns() + kFirstNs, std::memory_order_relaxed);
    error_.store(seen, std::memory_order_release);
  }

  // Something was freed, or stored, so that something can be.
  void end() {
    if (looked_at_.load(std::memory_order_relaxed) != 0)
      looked_at_.store(0, std::memory_order_relaxed);
    if (seen_.load(std::memory_order_relaxed) == 0) return;
    seen_.store(0, std::memory_order_relaxed);
    error_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<uint64_t> looked_at_{0};
  std::atomic<int> seen_{0};   // what a store said since something left
  std::atomic<int> error_{0};  // the same, once nothing is left to be tried
  std::atomic<uint64_t> next_ns_{0}, pause_ns_{0};
};

}  // namespace outcore::paging
