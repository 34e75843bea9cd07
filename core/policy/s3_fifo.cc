#include "core/policy/s3_fifo.h"

#include <algorithm>

#include "core/base/assert.h"

namespace outcore::policy {
namespace {

// The first queue is the small queue, the second the main queue. A leaving frame is in neither; its
// entry remembers where it came from, in the field in which DI-MMAP counts faults.
constexpr uint32_t kCameFromSmall = 0, kCameFromMain = 1, kGuessed = 2, kLook = 3;

}  // namespace

Status S3Fifo::allocate(size_t frames_max) {
  if (Status s = allocate_entries(frames_max); !s) return s;
  if (Status s = ghosts_.allocate(frames_max * parameters_[1].value / 100); !s) return s;
  if (Status s = late_ghosts_.allocate(late_history(frames_max)); !s) return s;
  return looks_.allocate(looks_history(frames_max));
}

Queue S3Fifo::admit(Entry& entry) {
  uint64_t age = 0;
  const bool has_ghost = ghosts_.remove(entry.key, &age);
  uint64_t late_age = 0;
  if (is_watched(entry.key) && late_ghosts_.remove(entry.key, &late_age))
    small_returns_.come_back(late_age);
  const bool was_look = looks_.remove(entry.key, &late_age);
  if (was_look) main_returns_.come_back(late_age);
  adapt(has_ghost && age < small_target_);
  const bool is_free = !has_been_full_ && second().size() < main_share_;
  const bool is_main = has_ghost || was_look || is_free || renewing_ != 0;
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
  next_look_ = kEvictionsALook;
  if (renewing_ != 0) {
    if (--renewing_ == 0) small_returns_ = main_returns_ = {};
    return;
  }
  if (++quiet_ % kQuietPeriods == 0) wait_ /= 2;
  if (quiet_ >= wait_ && must_renew()) {
    renewing_ = kRenewal;
    quiet_ = 0;
    wait_ = std::min(2 * wait_ + 4, kWaitMost);
  }
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
  if (ghosts_.remove(entry.key)) {
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
  if (evictions_ < next_look_ || second().size() == 0 || !remembers()) {
    const bool is_smalls_turn = first().size() > small_target_ || second().size() == 0;
    return (is_smalls_turn ? first() : second()).pop(entries_);
  }
  next_look_ += kEvictionsALook;
  const FrameId look = second().pop(entries_);
  entries_[static_cast<uint32_t>(look)].faults = kLook;
  return look;
}

void S3Fifo::forget(const Entry& entry, bool was_victim) {
  OC_CHECK(entry.faults <= kLook);
  if (!was_victim || entry.faults == kGuessed) return;
  count_eviction();
  if (entry.faults == kCameFromSmall) {
    ghosts_.add(entry.key);
    if (!is_watched(entry.key)) return;
    small_returns_.leave();
    late_ghosts_.add(entry.key);
  } else if (entry.faults == kLook) {
    main_returns_.leave();
    looks_.add(entry.key);
  }
}

void S3Fifo::capacity_changed() {
  small_target_ = small_least_ = std::max<size_t>(share(parameters_[0].value), 1);
  main_share_ = share(100 - parameters_[0].value);
  OC_CHECK(main_share_ <= capacity_);
  OC_CHECK(small_least_ != 0);
  // A history of another length forgets everything: not for a little.
  const size_t change = std::max(capacity_, planned_) - std::min(capacity_, planned_);
  if (planned_ != 0 && change < planned_ / 8) return;
  planned_ = capacity_;
  small_returns_ = main_returns_ = {};
  evictions_ = renewing_ = quiet_ = wait_ = 0;
  next_look_ = kEvictionsALook;
  ghosts_.set_history(share(parameters_[1].value));
  late_ghosts_.set_history(remembers() ? late_history(capacity_) : 0);
  looks_.set_history(remembers() ? looks_history(capacity_) : 0);
}

}  // namespace outcore::policy
