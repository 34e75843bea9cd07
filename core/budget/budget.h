// Budget: counts the bytes of pages that are resident, leaving or in flight, and of bounce buffers.
// A hard limit: used <= limit at every moment, except while a smaller limit waits for evictions
// (resize). Any thread; the fault path.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/wait.h"

namespace outcore::budget {

// BudgetCells: a copy of a budget's numbers for others to see. Nothing is decided by it: a process
// that came about without fork's handlers (a raw clone) may write to the same memory.
struct BudgetCells {
  std::atomic<uint64_t> limit{0};
  alignas(64) std::atomic<uint64_t> used{0};
  std::atomic<uint64_t> used_max{0};
  std::atomic<uint64_t> lent{0};  // beside the limit: what was for pages, and is a store's now
};

class Budget {
 public:
  // `seen`: zeros, which outlive the budget; nullptr: nobody sees it.
  explicit Budget(uint64_t limit_bytes, BudgetCells* seen = nullptr)
      : limit_(limit_bytes), seen_(seen != nullptr ? *seen : unseen_) {
    seen_.limit.store(limit_bytes, std::memory_order_relaxed);
  }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Adds the bytes to the used ones, unless that would exceed the limit: false.
  bool try_acquire(uint64_t bytes) {
    OC_ASSERT(bytes != 0);
    uint64_t used = used_.load(std::memory_order_relaxed);
    do {
      OC_CHECK(used + bytes >= used);
      if (used + bytes > limit_.load(std::memory_order_relaxed)) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_acq_rel));
    seen_.used.fetch_add(bytes, std::memory_order_relaxed);
    const uint64_t now = used + bytes;
    uint64_t highest = used_max_.load(std::memory_order_relaxed);
    while (now > highest &&
           !used_max_.compare_exchange_weak(highest, now, std::memory_order_relaxed)) {
    }
    if (now > highest) seen_.used_max.store(now, std::memory_order_relaxed);
    return true;
  }

  void release(uint64_t bytes) {
    const uint64_t before = used_.fetch_sub(bytes, std::memory_order_acq_rel);
    OC_CHECK(before >= bytes);
    seen_.used.fetch_sub(bytes, std::memory_order_relaxed);
    OC_ASSERT(used_max_.load(std::memory_order_relaxed) >= bytes);
    changes_.fetch_add(1, std::memory_order_release);
    if (waiters_.load(std::memory_order_seq_cst) == 0) return;
    // Do not wake all threads: each should find a few pages before it must wait again.
    constexpr uint64_t kBytesEach = 256 << 10;
    os::wake(&changes_, static_cast<uint32_t>(std::min<uint64_t>(bytes / kBytesEach + 1, 1 << 16)));
  }

  // Sleeps until a release() after `seen` was read from changes(), at most timeout_ns.
  uint32_t changes() const { return changes_.load(std::memory_order_acquire); }
  void wait_for_change(uint32_t seen, uint64_t timeout_ns) {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    if (changes_.load(std::memory_order_seq_cst) == seen) os::wait(&changes_, seen, timeout_ns);
    const uint32_t before = waiters_.fetch_sub(1, std::memory_order_seq_cst);
    OC_CHECK(before > 0);
  }

  uint64_t limit() const { return limit_.load(std::memory_order_acquire); }
  uint64_t used() const { return used_.load(std::memory_order_acquire); }
  uint64_t used_max() const { return used_max_.load(std::memory_order_acquire); }
  void set_limit(uint64_t bytes) {
    limit_.store(bytes, std::memory_order_release);
    seen_.limit.store(bytes, std::memory_order_relaxed);
  }
  // What is lent beside it, for others to see.
  void show_lent(uint64_t bytes) { seen_.lent.store(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> limit_;
  alignas(64) std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> used_max_{0};
  BudgetCells unseen_;
  BudgetCells& seen_;
  alignas(64) std::atomic<uint32_t> changes_{0};
  std::atomic<uint32_t> waiters_{0};
};

}  // namespace outcore::budget
