#include "core/paging/shard.h"

#include "core/base/assert.h"

namespace outcore::paging {

using budget::FrameRecord;
using budget::FrameTable;
using budget::kNone;

void FrameQueue::push(FrameTable& frames, uint32_t frame) {
  OC_CHECK(frame < frames.count());
  OC_CHECK(size_ < frames.count());
  FrameRecord& record = frames[frame];
  OC_CHECK(record.list == 0);
  record.list = list_;
  record.prev = newest_;
  record.next = kNone;
  if (newest_ != kNone)
    frames[newest_].next = frame;
  else
    oldest_ = frame;
  newest_ = frame;
  ++size_;
}

void FrameQueue::remove(FrameTable& frames, uint32_t frame) {
  OC_CHECK(frame < frames.count());
  OC_CHECK(size_ != 0);
  FrameRecord& record = frames[frame];
  OC_CHECK(record.list == list_);
  OC_ASSERT(record.prev != kNone || oldest_ == frame);
  OC_ASSERT(record.next != kNone || newest_ == frame);
  if (record.prev != kNone)
    frames[record.prev].next = record.next;
  else
    oldest_ = record.next;
  if (record.next != kNone)
    frames[record.next].prev = record.prev;
  else
    newest_ = record.prev;
  record.list = 0;
  record.prev = record.next = kNone;
  --size_;
}

uint32_t FrameQueue::pop(FrameTable& frames) {
  const uint32_t frame = oldest_;
  OC_CHECK((frame == kNone) == (size_ == 0));
  if (frame != kNone) remove(frames, frame);
  return frame;
}

}  // namespace outcore::paging
