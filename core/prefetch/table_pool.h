// TablePool: a StreamTable for each thread that misses, in memory that is not the threads' own.
//
// What the fault path needs of a thread's own memory must be there from its start (static TLS), of
// which a library that is loaded late gets some hundred bytes. So tables lie here, found by the
// thread's number. One of a thread that is long gone goes to whoever needs it. The fault path: no
// allocation, nothing that waits. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"
#include "core/prefetch/stream_table.h"

namespace outcore::prefetch {

class TablePool {
 public:
  static constexpr size_t kSets = 128, kWays = 8;
  static constexpr uint64_t kIdleMisses =
      4096;  // after so many of others a table may go to another

  struct Slot {
    std::atomic<uint32_t> thread;  // 0: nobody's
    std::atomic<uint32_t> is_taken;
    std::atomic<uint64_t> used;  // misses of all, when it was taken last
    uint64_t round;              // ReaderCount's
    StreamTable table;
  };

  TablePool();  // without memory from the kernel there are no tables, and no readahead
  ~TablePool();
  TablePool(const TablePool&) = delete;
  TablePool& operator=(const TablePool&) = delete;

  // A thread's table while this lives; none if all that it may have are in use.
  class Mine {
   public:
    Mine(TablePool& pool, uint32_t thread) : slot_(pool.take(thread)) {}
    ~Mine() {
      if (slot_ == nullptr) return;
      OC_CHECK(slot_->is_taken.load(std::memory_order_relaxed) == 1);
      slot_->is_taken.store(0, std::memory_order_release);
    }
    Mine(const Mine&) = delete;
    Mine& operator=(const Mine&) = delete;
    explicit operator bool() const { return slot_ != nullptr; }
    StreamTable& table() {
      OC_ASSERT(slot_ != nullptr);
      return slot_->table;
    }
    uint64_t& round() {
      OC_ASSERT(slot_ != nullptr);
      return slot_->round;
    }

   private:
    Slot* const slot_;
  };

 private:
  Slot* take(uint32_t thread);

  Slot* slots_ = nullptr;  // zeros of the kernel's until somebody needs them
  std::atomic<uint64_t> misses_{0};
};

}  // namespace outcore::prefetch
