// FrameTable: the numbers of frames, and a record for each. The memory of a frame is where its page
// is mapped. allocate_frame() and free_frame(): any thread, the fault path, no lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "outcore/policy.h"
#include "outcore/result.h"

namespace outcore::budget {

inline constexpr uint32_t kNone = 0xFFFFFFFF;

// Who may access a record: `page` and `cache`, the thread that allocated the frame, until its page
// is resident; `is_guess` likewise, and the holder of the turn afterwards; the other fields, the
// holder of the shard's turn, except `inbox_next` (paging/shard_inbox.h).
struct FrameRecord {
  uint64_t page = 0;
  uint32_t cache = kNone;
  uint32_t inbox_next = kNone;
  uint32_t prev = kNone;  // in the shard's leaving or cold list
  uint32_t next = kNone;
  uint8_t is_in_policy = 0;
  uint8_t list = 0;      // 0 none, 1 leaving, 2 cold, 3 probed
  uint8_t is_known = 0;  // its shard's policy knows of it
  uint8_t is_guess = 0;  // it came in without a miss; until its shard's policy knows of it
};
static_assert(sizeof(FrameRecord) <= 32);

class FrameTable {
 public:
  // Allocates records for `count` frames; their memory is used when frames are.
  Status allocate(uint32_t count) {
    OC_CHECK(count_ == 0);
    OC_CHECK(count < kNone);
    count_ = count;
    if (Status s = record_.allocate(count); !s) return s;
    return free_next_.allocate(count);
  }

  // A free frame; kNone if there is none.
  uint32_t allocate_frame() {
    uint64_t head = free_head_.load(std::memory_order_acquire);
    while (static_cast<uint32_t>(head) != kNone) {
      const uint32_t frame = static_cast<uint32_t>(head);
      OC_CHECK(frame < count_);
      const uint32_t next = free_next_[frame].load(std::memory_order_relaxed);
      if (free_head_.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | next,
                                           std::memory_order_acq_rel))
        return frame;
    }
    const uint32_t fresh = used_once_.fetch_add(1, std::memory_order_relaxed);
    if (fresh < count_) return fresh;
    used_once_.fetch_sub(1, std::memory_order_relaxed);
    return kNone;
  }

  void free_frame(uint32_t frame) {
    OC_CHECK(frame < count_);
    OC_ASSERT(frame < used_once());
    uint64_t head = free_head_.load(std::memory_order_acquire);
    do {
      OC_CHECK(static_cast<uint32_t>(head) != frame);
      free_next_[frame].store(static_cast<uint32_t>(head), std::memory_order_relaxed);
    } while (!free_head_.compare_exchange_weak(head, ((head >> 32) + 1) << 32 | frame,
                                               std::memory_order_acq_rel));
  }

  FrameRecord& operator[](uint32_t frame) {
    OC_ASSERT(frame < count_);
    return record_[frame];
  }
  uint32_t count() const { return count_; }
  // All frames with numbers at or above this were never used.
  uint32_t used_once() const {
    const uint32_t used = used_once_.load(std::memory_order_acquire);
    return used < count_ ? used : count_;
  }
  uint64_t touched_bytes() const { return record_.touched() + free_next_.touched(); }

 private:
  uint32_t count_ = 0;
  os::Table<FrameRecord> record_;
  os::Table<std::atomic<uint32_t>> free_next_;
  // The high half is a tag that changes with each exchange, against reuse between load and
  // exchange.
  alignas(64) std::atomic<uint64_t> free_head_{kNone};
  std::atomic<uint32_t> used_once_{0};
};

}  // namespace outcore::budget
