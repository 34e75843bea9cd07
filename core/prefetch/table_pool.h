// TablePool: a StreamTable for each thread that misses, outside of the threads' own memory.
//
// Thread-local memory for the fault path must exist from the start of a thread (static TLS), and a
// library that is loaded late gets only some hundred bytes of it. So the tables are here, found by
// the thread's number. A table of a thread that is long gone is given to another. Any thread, the
// fault path: no allocation, no waiting.
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
  // After this many misses of other threads, a table may be given away.
  static constexpr uint64_t kIdleMisses = 4096;

  struct Slot {
    std::atomic<uint32_t> thread;  // 0: no thread's
    std::atomic<uint32_t> is_taken;
    std::atomic<uint64_t> used;  // misses of all threads when it was last used
    uint64_t round;              // ReaderCount's
    StreamTable table;
  };

  TablePool();  // if the kernel gives no memory, there are no tables and no readahead
  ~TablePool();
  TablePool(const TablePool&) = delete;
  TablePool& operator=(const TablePool&) = delete;

  // The table of a thread, during the life of this object; false if all tables it could have are in
  // use.
  class Mine {
   public:
    Mine(TablePool& pool, uint32_t thread) : slot_(pool.acquire(thread)) {}
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
  Slot* acquire(uint32_t thread);

  Slot* slots_ = nullptr;  // zeros until they are used
  std::atomic<uint64_t> misses_{0};
};

}  // namespace outcore::prefetch
