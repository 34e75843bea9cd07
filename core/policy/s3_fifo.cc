#include "core/policy/s3_fifo.h"

#include <algorithm>

#include "core/base/assert.h"

namespace outcore::policy {
namespace {

// The first queue is the small queue, the second the main queue. A leaving frame is in neither; its
// entry remembers where it came from, in the field in which DI-MMAP counts faults.
constexpr uint32_t kCameFromSmall = 0, kCameFromMain = 1, kGuessed = 2;

}  // namespace

Status S3Fifo::allocate(size_t frames_max) {
  if (Status s = allocate_entries(frames_max); !s) return s;
  return ghosts_.allocate(frames_max * parameters_[1].value / 100);
}

Queue S3Fifo::admit(Entry& entry) {
  uint64_t age = 0;
  const bool has_ghost = ghosts_.take(entry.key, &age);
  adapt(has_ghost && age < small_target_);
  const bool is_free = !has_been_full_ && second().size() < main_share_;
  entry.faults = has_ghost || is_free ? kCameFromMain : kCameFromSmall;
  return has_ghost || is_free ? Queue::kSecond : Queue::kFirst;
}

// A page that returns so soon would still be resident if the small queue were longer: for example a
// page that was prefetched and whose reader had to wait for a core. Without such pages the queue
// shrinks back to its share.
void S3Fifo::adapt(bool came_too_soon) {
  OC_CHECK(small_target_ >= small_least_);
  OC_CHECK(patience_ < kPatience);
  if (came_too_soon) {
    small_target_ = std::min(small_target_ + 1, std::max(share(kSmallPercentMax), small_least_));
  } else if (++patience_ == kPatience) {
    patience_ = 0;
    if (small_target_ > small_least_) --small_target_;
  }
}

// A ghost of it means that it was asked for before, or came in beside pages that were.
Queue S3Fifo::admit_guess(Entry& entry) {
  if (ghosts_.take(entry.key)) {
    entry.faults = kCameFromMain;
    return Queue::kSecond;
  }
  entry.faults = kGuessed;
  return Queue::kFirst;
}

// Memory is full already, of pages that have proved something or nothing: as when it fills for the
// first time, they stay where they are until others have returned.
Queue S3Fifo::admit_taken_over(Entry& entry) {
  const bool is_main = second().size() < main_share_;
  entry.faults = is_main ? kCameFromMain : kCameFromSmall;
  return is_main ? Queue::kSecond : Queue::kFirst;
}

Queue S3Fifo::readmit(Entry& entry) {
  entry.faults = kCameFromMain;
  return Queue::kSecond;
}

FrameId S3Fifo::pick() {
  OC_CHECK(resident_count() != 0);
  has_been_full_ = true;
  const bool is_smalls_turn = first().size() > small_target_ || second().size() == 0;
  return (is_smalls_turn ? first() : second()).pop(entries_);
}

void S3Fifo::forget(const Entry& entry, bool was_victim) {
  OC_CHECK(entry.faults <= kGuessed);
  if (was_victim && entry.faults == kCameFromSmall) ghosts_.add(entry.key);
}

void S3Fifo::capacity_changed() {
  small_target_ = small_least_ = std::max<size_t>(share(parameters_[0].value), 1);
  main_share_ = share(100 - parameters_[0].value);
  OC_CHECK(main_share_ <= capacity_);
  OC_CHECK(small_least_ != 0);
  ghosts_.set_history(share(parameters_[1].value));
}

}  // namespace outcore::policy
