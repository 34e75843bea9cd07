#include "core/policy/di_mmap.h"

#include "core/base/assert.h"

namespace outcore::policy {

Status DiMmap::allocate(size_t frames_max) {
  if (Status s = allocate_entries(frames_max); !s) return s;
  return buckets_.allocate(parameters_[2].value);
}

uint32_t& DiMmap::bucket_of(PageKey key) {
  const uint64_t bucket = (key >> 32) * buckets_.count() >> 32;
  OC_CHECK(bucket < buckets_.count());
  return buckets_[bucket];
}

Queue DiMmap::admit(Entry& entry) {
  entry.faults = bucket_of(entry.key) + 1;
  OC_CHECK(entry.faults != 0);
  fault_sum_ += entry.faults;
  return Queue::kFirst;
}

Queue DiMmap::readmit(Entry& entry) {
  OC_CHECK(entry.faults != 0);
  OC_CHECK(fault_sum_ >= entry.faults);
  if (entry.faults < UINT32_MAX) ++entry.faults, ++fault_sum_;
  return Queue::kFirst;
}

// The page has left its queue already, but its faults are still in the sum; hence the + 1.
bool DiMmap::is_hot(const Entry& entry) const {
  OC_ASSERT(fault_sum_ >= entry.faults);
  return entry.faults * (page_count() + 1) > fault_sum_;
}

FrameId DiMmap::pick() {
  for (;;) {
    OC_CHECK(resident_count() != 0);
    // The hot FIFO is too long: by the page that joined last, or because the capacity shrank.
    if (second().size() > hot_max_ || first().size() == 0) return second().pop(entries_);
    const FrameId displaced = first().pop(entries_);
    OC_CHECK(displaced != kNoFrame);
    if (!is_hot(entry_of(displaced))) return displaced;
    second().push(entries_, displaced);
  }
}

void DiMmap::forget(const Entry& entry, bool was_victim) {
  OC_CHECK(fault_sum_ >= entry.faults);
  fault_sum_ -= entry.faults;
  if (!was_victim) return;
  uint32_t& bucket = bucket_of(entry.key);
  const uint32_t bucket_faults = bucket + 1;
  if (entry.faults > bucket_faults)
    bucket = entry.faults - 1;
  else if (entry.faults == bucket_faults && bucket > 0)
    --bucket;
}

bool DiMmap::is_valid() const {
  if (!QueuePolicy::is_valid()) return false;
  uint64_t sum = 0;
  for (const Queue queue : {Queue::kLeaving, Queue::kFirst, Queue::kSecond}) {
    const FrameList& frames = list(queue);
    for (FrameId f = frames.oldest(); f != kNoFrame; f = frames.newer(entries_, f)) {
      const uint32_t faults = entries_[static_cast<uint32_t>(f)].faults;
      if (faults == 0) return false;
      sum += faults;
    }
  }
  return sum == fault_sum_;
}

}  // namespace outcore::policy
