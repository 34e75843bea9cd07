// WaitLimit: whether somebody has waited long enough. While the process stands still (SIGSTOP,
// Ctrl-Z, a frozen cgroup) nobody can do what is waited for, and whoever waited then would give up
// as soon as it goes on: so of the time between two looks an eighth of the bound counts at most.
// One thread; the fault path. REQUIRES: somebody looks more often than that, or waits longer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/os/wait.h"

namespace outcore::os {

class WaitLimit {
 public:
  explicit WaitLimit(uint64_t most_ns) : most_ns_(most_ns), seen_ns_(now_ns()) {}

  // A look.
  bool is_over() {
    const uint64_t now = now_ns();
    waited_ns_ += std::min(now - std::min(seen_ns_, now), look_ns_max());
    seen_ns_ = now;
    return waited_ns_ > most_ns_;
  }
  uint64_t look_ns_max() const { return most_ns_ / 8 + 1; }  // sleep no longer between two
  // As of the last look.
  uint64_t waited_ns() const { return waited_ns_; }
  uint64_t left_ns() const { return most_ns_ - std::min(most_ns_, waited_ns_); }

 private:
  uint64_t most_ns_, seen_ns_, waited_ns_ = 0;
};

}  // namespace outcore::os
