// Gate: how many transfers of a kind a store gets at a time (U7: a device that slows down under
// many writers).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "os/wait.h"

namespace outcore::paging {

class Gate {
 public:
  void set_limit(uint32_t limit) { limit_ = limit; }  // 0: open. REQUIRES: nobody is inside.
  uint32_t limit() const { return limit_; }

  // Waits until there is room, and takes it for up to `most` transfers: how many. Never more waits
  // while some is held: two batches with a part each would wait for each other. Transfers end, so
  // the wait does. The fault path.
  uint32_t enter(uint32_t most = 1) {
    if (limit_ == 0) return most;
    uint32_t inside = inside_.load(std::memory_order_acquire);
    for (;;) {
      if (inside >= limit_) {
        waiters_.fetch_add(1, std::memory_order_seq_cst);
        os::wait(&inside_, inside, 100'000'000);
        waiters_.fetch_sub(1, std::memory_order_seq_cst);
        inside = inside_.load(std::memory_order_acquire);
        continue;
      }
      const uint32_t taken = std::min(most, limit_ - inside);
      if (inside_.compare_exchange_weak(inside, inside + taken, std::memory_order_acq_rel))
        return taken;
    }
  }
  void leave(uint32_t count = 1) {
    if (limit_ == 0) return;
    inside_.fetch_sub(count, std::memory_order_seq_cst);
    if (waiters_.load(std::memory_order_seq_cst) != 0) os::wake_all(&inside_);
  }

 private:
  uint32_t limit_ = 0;
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace outcore::paging
