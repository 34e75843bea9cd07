// FrameList: a queue of frames, oldest first, linked through the policy's table of entries. The
// holder of the shard's turn; allocates nothing.
#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "outcore/policy.h"

namespace outcore::policy {

// The queue that a frame is in. A fresh table consists of zeros: kUnknown, a frame that the policy
// does not know.
enum class Queue : uint8_t { kUnknown, kLeaving, kFirst, kSecond };
inline constexpr size_t kQueues = 4;

struct Entry {
  PageKey key;
  uint32_t newer, older;  // neighbours in the queue
  uint32_t faults;        // fault counter of DI-MMAP
  Queue queue;
};
static_assert(sizeof(Entry) <= 32, "the contract of Policy: at most 32 bytes a frame");
using EntryTable = os::Table<Entry>;

class FrameList {
 public:
  explicit FrameList(Queue queue) : queue_(queue) {}

  // REQUIRES: the frame is in no queue.
  void push(EntryTable& entries, FrameId frame) {
    const auto i = static_cast<uint32_t>(frame);
    OC_CHECK(i < entries.count());
    OC_CHECK(size_ < entries.count());
    Entry& entry = entries[i];
    OC_CHECK(entry.queue == Queue::kUnknown);
    entry.queue = queue_;
    entry.newer = kNone;
    entry.older = newest_;
    (newest_ == kNone ? oldest_ : entries[newest_].newer) = i;
    newest_ = i;
    ++size_;
  }

  // REQUIRES: the frame is in this queue. Afterwards it is in none.
  void remove(EntryTable& entries, FrameId frame) {
    const auto i = static_cast<uint32_t>(frame);
    OC_CHECK(i < entries.count());
    Entry& entry = entries[i];
    OC_CHECK(entry.queue == queue_);
    OC_CHECK(size_ > 0);
    OC_ASSERT(entry.older != kNone || oldest_ == i);
    OC_ASSERT(entry.newer != kNone || newest_ == i);
    (entry.older == kNone ? oldest_ : entries[entry.older].newer) = entry.newer;
    (entry.newer == kNone ? newest_ : entries[entry.newer].older) = entry.older;
    entry.queue = Queue::kUnknown;
    --size_;
  }

  // Removes and returns the oldest frame; kNoFrame if the queue is empty.
  FrameId pop(EntryTable& entries) {
    OC_CHECK((oldest_ == kNone) == (size_ == 0));
    if (oldest_ == kNone) return kNoFrame;
    const FrameId frame{oldest_};
    remove(entries, frame);
    return frame;
  }

  uint32_t size() const { return size_; }
  FrameId oldest() const { return FrameId{oldest_}; }
  FrameId newer(const EntryTable& entries, FrameId frame) const {
    return FrameId{entries[static_cast<uint32_t>(frame)].newer};
  }

  // Checks that size() entries lead from the oldest to the newest and back, all of this queue.
  bool is_valid(const EntryTable& entries) const {
    uint32_t count = 0, older = kNone;
    for (uint32_t i = oldest_; i != kNone; i = entries[i].newer) {
      if (i >= entries.count() || ++count > size_) return false;
      if (entries[i].queue != queue_ || entries[i].older != older) return false;
      older = i;
    }
    return count == size_ && newest_ == older;
  }

 private:
  static constexpr uint32_t kNone = static_cast<uint32_t>(kNoFrame);
  Queue queue_;
  uint32_t oldest_ = kNone, newest_ = kNone, size_ = 0;
};

}  // namespace outcore::policy
