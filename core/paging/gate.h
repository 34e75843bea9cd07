// Gate: limits how many transfers of a kind a store gets at a time, together with other stores on
// its device (some devices slow down under many writers).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::paging {

// TransferCount: how many transfers are inside the gates that share it.
struct TransferCount {
  std::atomic<uint32_t> inside{0};
  std::atomic<uint32_t> waiters{0};
  // The smallest limit that a gate has asked for; it applies to all, because a gate with a smaller
  // limit than the others might wait for ever.
  std::atomic<uint32_t> limit{UINT32_MAX};

  // The gate of the writers to a device, one for the whole process, as long as it is used; a forked
  // child has others. Not on the fault path.
  static std::shared_ptr<TransferCount> of_writers(uint64_t device);
};

class Gate {
 public:
  // 0: no limit. REQUIRES, here and below: no transfer is inside.
  void set_limit(uint32_t limit) {
    OC_ASSERT(count_->waiters.load() == 0);
    limit_ = limit;
  }
  void share(std::shared_ptr<TransferCount> transfers) {
    OC_CHECK(transfers != nullptr);
    OC_CHECK(count_->inside.load() == 0);
    count_ = std::move(transfers);
    uint32_t least = count_->limit.load();
    while (limit_ != 0 && limit_ < least && !count_->limit.compare_exchange_weak(least, limit_)) {
    }
  }
  uint32_t limit() const { return limit_; }

  // Waits until there is room, and takes it for up to `most` transfers: how many. Never more waits
  // while some is held: two batches with a part each would wait for each other. Transfers end, so
  // the wait does. The fault path.
  uint32_t enter(uint32_t most = 1) {
    OC_CHECK(most != 0);
    if (limit_ == 0) return most;
    TransferCount& transfers = *count_;
    const uint32_t limit = std::min(limit_, transfers.limit.load(std::memory_order_relaxed));
    uint32_t inside = transfers.inside.load(std::memory_order_acquire);
    for (;;) {
      if (inside >= limit) {
        transfers.waiters.fetch_add(1, std::memory_order_seq_cst);
        os::wait(&transfers.inside, inside, 100'000'000);
        transfers.waiters.fetch_sub(1, std::memory_order_seq_cst);
        inside = transfers.inside.load(std::memory_order_acquire);
        continue;
      }
      const uint32_t taken = std::min(most, limit - inside);
      OC_CHECK(taken != 0);
      if (transfers.inside.compare_exchange_weak(inside, inside + taken, std::memory_order_acq_rel))
        return taken;
    }
  }
  void leave(uint32_t count = 1) {
    if (limit_ == 0) return;
    TransferCount& transfers = *count_;
    const uint32_t before = transfers.inside.fetch_sub(count, std::memory_order_seq_cst);
    OC_CHECK(before >= count);
    if (transfers.waiters.load(std::memory_order_seq_cst) != 0) os::wake_all(&transfers.inside);
  }

 private:
  uint32_t limit_ = 0;
  std::shared_ptr<TransferCount> count_ = std::make_shared<TransferCount>();
};

}  // namespace outcore::paging
