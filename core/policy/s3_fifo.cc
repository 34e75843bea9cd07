#include "core/policy/s3_fifo.h"

#include <algorithm>

#include "core/base/assert.h"

namespace outcore::policy {
namespace {

// The first queue is the small queue, the second the main queue. A leaving frame is in neither; its
// entry remembers where it came from, in the field in which DI-MMAP counts faults.
constexpr uint32_t kCameFromSmall = 0, kCameFromMain = 1, kGuessed = 2;

}  // namespace

// As many as leave in the periods that are looked at, and those that lead to the main queue.
uint64_t S3Fifo::history_of(uint64_t frames) const {
  if (parameters_[1].value == 0) return 0;
  return frames / 100 * std::max<uint64_t>(parameters_[1].value, 130) + kPeriodLeast;
}

Status S3Fifo::allocate(size_t frames_max) {
  if (Status s = allocate_entries(frames_max); !s) return s;
  if (Status s = ghosts_.allocate(history_of(frames_max)); !s) return s;
  return main_ghosts_.allocate(main_history_of(frames_max));
}

Queue S3Fifo::admit(Entry& entry) {
  uint64_t age = 0;
  const bool has_ghost = ghosts_.take(entry.key, &age);
  if (has_ghost) small_returns_.come_back(age);
  uint64_t main_age = 0;
  if (main_ghosts_.take(entry.key, &main_age)) main_returns_.come_back(main_age);
  adapt(has_ghost && age < small_target_);
  const bool is_free = !has_been_full_ && second().size() < main_share_;
  const bool is_owed = owed_ != 0 && !is_free;
  if (is_owed) --owed_;
  const bool is_main = (has_ghost && age <= early_) || is_free || is_owed || renewing_ != 0;
  entry.faults = is_main ? kCameFromMain : kCameFromSmall;
  return is_main ? Queue::kSecond : Queue::kFirst;
}

// Pages that return late return from an earlier period only.
bool S3Fifo::must_renew() const {
  for (size_t ago = 1; ago < VictimReturns::kPeriods; ++ago) {
    if (small_returns_.are_known(ago) && main_returns_.are_known(ago) &&
        small_returns_.are_many(ago) && main_returns_.are_far_below(small_returns_, ago))
      return true;
  }
  return false;
}

// Looks at the end of each period whether the pages of the main queue still come back. If they do
// not, but those of the small queue do, the program has gone on to other data. It would miss all of
// that for ever, although it may fit: then the main queue takes all pages that come until it has
// changed its own.
void S3Fifo::count_eviction() {
  if (++evictions_ < std::max<uint64_t>(capacity_ / 2, kPeriodLeast)) return;
  evictions_ = 0;
  if (renewing_ != 0) {
    if (--renewing_ == 0) small_returns_ = main_returns_ = {};
    return;
  }
  if (must_renew()) renewing_ = kRenewal;
  small_returns_.begin_period(), main_returns_.begin_period();
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
  uint64_t age = 0;
  if (ghosts_.take(entry.key, &age) && age <= early_) {
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
  // Now and then the main queue gives up a page though it needs not, to see whether it comes back.
  const bool is_a_look = ++picks_ % kPicksALook == 0 && parameters_[1].value != 0;
  const bool is_smalls_turn =
      (first().size() > small_target_ && !is_a_look) || second().size() == 0;
  if (is_a_look && !is_smalls_turn) ++owed_;
  return (is_smalls_turn ? first() : second()).pop(entries_);
}

void S3Fifo::forget(const Entry& entry, bool was_victim) {
  OC_CHECK(entry.faults <= kGuessed);
  if (!was_victim) return;
  count_eviction();
  if (entry.faults == kCameFromSmall) {
    small_returns_.leave();
    ghosts_.add(entry.key);
  } else if (entry.faults == kCameFromMain) {
    main_returns_.leave();
    main_ghosts_.add(entry.key);
  }
}

void S3Fifo::capacity_changed() {
  small_target_ = small_least_ = std::max<size_t>(share(parameters_[0].value), 1);
  main_share_ = share(100 - parameters_[0].value);
  OC_CHECK(main_share_ <= capacity_);
  OC_CHECK(small_least_ != 0);
  early_ = share(parameters_[1].value);
  small_returns_ = main_returns_ = {};
  evictions_ = renewing_ = 0;
  ghosts_.set_history(history_of(capacity_));
  main_ghosts_.set_history(main_history_of(capacity_));
}

}  // namespace outcore::policy
