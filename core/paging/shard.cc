#include "core/paging/shard.h"

#include "core/base/assert.h"

namespace outcore::paging {

using budget::FrameRecord;
using budget::FrameTable;
using budget::kNone;

void FrameQueue::push(FrameTable& frames, uint32_t frame) {
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
  FrameRecord& record = frames[frame];
  OC_CHECK(record.list == list_);
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
  if (frame != kNone) remove(frames, frame);
  return frame;
}

Shard::~Shard() {
  if (write_buffer != nullptr) os::free_table(write_buffer, write_buffer_bytes);
}

}  // namespace outcore::paging
