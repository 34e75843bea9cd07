// WaitLimit: whether a thread has waited long enough. While the process is stopped (SIGSTOP,
// Ctrl-Z, a frozen cgroup) no other thread can do what is waited for, and a waiting thread would
// give up as soon as the process continues. So of the time between two looks at most a second
// counts, or an eighth of the bound; a thread that looks less often waits longer. One thread; the
// fault path.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/os/wait.h"

namespace outcore::os {

class WaitLimit {
 public:
  explicit WaitLimit(uint64_t most_ns) : most_ns_(most_ns), seen_ns_(now_ns()) {}

  // A look.
  bool is_over() { return is_over(look_ns_max()); }
  // A look of who has worked since the last one, instead of sleeping, perhaps for as long as a slow
  // store took: half of the bound counts at most, so that the second time in vain is the last.
  bool is_over_after_work() { return is_over(std::max(look_ns_max(), most_ns_ / 2 + 1)); }
  // Sleep no longer between two.
  uint64_t look_ns_max() const { return std::max(kLookNs, most_ns_ / 8); }
  // As of the last look.
  uint64_t waited_ns() const { return waited_ns_; }
  uint64_t left_ns() const { return most_ns_ - std::min(most_ns_, waited_ns_); }

 private:
  bool is_over(uint64_t counted_ns_max) {
    const uint64_t now = now_ns();
    waited_ns_ += std::min(now - std::min(seen_ns_, now), counted_ns_max);
    seen_ns_ = now;
    return waited_ns_ > most_ns_;
  }

  static constexpr uint64_t kLookNs = 1'000'000'000;
  uint64_t most_ns_, seen_ns_, waited_ns_ = 0;
};

}  // namespace outcore::os
