#include "core/policy/queue_policy.h"

#include <algorithm>

#include "core/base/assert.h"

namespace outcore::policy {

Entry& QueuePolicy::entry_of(FrameId frame) {
  OC_CHECK(static_cast<uint32_t>(frame) < entries_.count());
  return entries_[static_cast<uint32_t>(frame)];
}

void QueuePolicy::filled(FrameId frame, PageKey key) { join(frame, key, &QueuePolicy::admit); }

void QueuePolicy::guessed(FrameId frame, PageKey key) {
  join(frame, key, &QueuePolicy::admit_guess);
}

void QueuePolicy::taken_over(FrameId frame, PageKey key) {
  join(frame, key, &QueuePolicy::admit_taken_over);
}

void QueuePolicy::join(FrameId frame, PageKey key, Queue (QueuePolicy::*queue_for)(Entry&)) {
  Entry& entry = entry_of(frame);
  OC_CHECK(entry.queue == Queue::kUnknown);
  entry.key = key;
  const Queue queue = (this->*queue_for)(entry);
  OC_CHECK(queue == Queue::kFirst || queue == Queue::kSecond);
  list(queue).push(entries_, frame);
}

PageKey QueuePolicy::key_of(FrameId frame) const {
  OC_CHECK(static_cast<uint32_t>(frame) < entries_.count());
  const Entry& entry = entries_[static_cast<uint32_t>(frame)];
  OC_CHECK(entry.queue != Queue::kUnknown);
  return entry.key;
}

bool QueuePolicy::is_resident(FrameId frame) const {
  OC_CHECK(static_cast<uint32_t>(frame) < entries_.count());
  const Queue queue = entries_[static_cast<uint32_t>(frame)].queue;
  OC_CHECK(queue != Queue::kUnknown);
  return queue != Queue::kLeaving;
}

size_t QueuePolicy::choose_victims(std::span<FrameId> out) {
  size_t count = 0;
  for (; count < out.size() && resident_count() > 0; ++count) {
    out[count] = pick();
    OC_CHECK(out[count] != kNoFrame);
    OC_CHECK(entry_of(out[count]).queue == Queue::kUnknown);
    list(Queue::kLeaving).push(entries_, out[count]);
  }
  return count;
}

void QueuePolicy::rescued(FrameId frame) {
  Entry& entry = entry_of(frame);
  OC_CHECK(entry.queue == Queue::kLeaving);
  list(Queue::kLeaving).remove(entries_, frame);
  const Queue queue = readmit(entry);
  OC_CHECK(queue == Queue::kFirst || queue == Queue::kSecond);
  list(queue).push(entries_, frame);
}

void QueuePolicy::remove_entry(FrameId frame, Entry& entry, bool was_victim) {
  OC_CHECK(entry.queue != Queue::kUnknown);
  list(entry.queue).remove(entries_, frame);
  OC_CHECK(entry.queue == Queue::kUnknown);
  forget(entry, was_victim);
}

void QueuePolicy::freed(FrameId frame) {
  Entry& entry = entry_of(frame);
  OC_CHECK(entry.queue == Queue::kLeaving);
  remove_entry(frame, entry, true);
}

void QueuePolicy::removed(FrameId frame) {
  Entry& entry = entry_of(frame);
  OC_CHECK(entry.queue != Queue::kUnknown);
  remove_entry(frame, entry, false);
}

size_t QueuePolicy::leaving_target() const {
  return std::min(share(leaving_percent_), capacity_ / 2);
}

void QueuePolicy::set_capacity(size_t frames) {
  OC_CHECK(frames <= entries_.count());
  capacity_ = frames;
  capacity_changed();
}

bool QueuePolicy::is_valid() const {
  for (const FrameList& each : lists_)
    if (!each.is_valid(entries_)) return false;
  return list(Queue::kUnknown).size() == 0 && capacity_ <= entries_.count() &&
         resident_count() + leaving_count() <= entries_.count();
}

}  // namespace outcore::policy
