// ShardInbox: frames that were filled, rescued or unpinned, and of which their shard's policy has
// no report yet.
//
// A stack that is drained whole. A frame is in it at most once: it is pushed when it is filled;
// again only when it was rescued or unparked, which is possible only after the policy was told of
// it. A frame is pushed before its page becomes resident, so whoever holds the turn and sees a
// resident page can drain the inbox first, and then the policy knows the frame.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/base/assert.h"
#include "core/budget/frame_table.h"

namespace outcore::paging {

class ShardInbox {
 public:
  // Any thread, the fault path.
  void push(budget::FrameTable& frames, uint32_t frame) {
    OC_CHECK(frame < frames.count());
    uint32_t head = head_.load(std::memory_order_relaxed);
    do {
      OC_CHECK(head != frame);
      frames[frame].inbox_next = head;
    } while (!head_.compare_exchange_weak(head, frame, std::memory_order_acq_rel));
  }

  // The turn's holder: calls notify(frame) for each, oldest first.
  template <typename Notify>
  void drain(budget::FrameTable& frames, const Notify& notify) {
    uint32_t newest = head_.exchange(budget::kNone, std::memory_order_acq_rel);
    uint32_t oldest = budget::kNone;
    while (newest != budget::kNone) {
      const uint32_t next = frames[newest].inbox_next;
      OC_CHECK(next != newest);
      frames[newest].inbox_next = oldest;
      oldest = newest;
      newest = next;
    }
    while (oldest != budget::kNone) {
      const uint32_t next = frames[oldest].inbox_next;  // before notify(): it may free the frame
      notify(oldest);
      oldest = next;
    }
  }
  bool is_empty() const { return head_.load(std::memory_order_acquire) == budget::kNone; }

 private:
  alignas(64) std::atomic<uint32_t> head_{budget::kNone};
};

}  // namespace outcore::paging
