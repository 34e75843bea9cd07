#include "bench/sort_list.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "bench/check.h"

namespace outcore::bench {

SortList::SortList(WordRange all, uint64_t joint_words_min) : joint_words_min_(joint_words_min) {
  ranges_[count_++] = all;
}

// What has changed is seen by whoever looks after this.
void SortList::tell() {
  ++news_;
  if (waiters_.load() != 0)
    syscall(SYS_futex, reinterpret_cast<uint32_t*>(&news_), FUTEX_WAKE, INT_MAX, nullptr, nullptr,
            0);
}

// Until there is news after what was seen; a tenth of a second at most, as the dead tell nothing.
void SortList::wait(uint32_t seen) {
  static constexpr timespec kWaitMax{0, 100'000'000};
  ++waiters_;
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&news_), FUTEX_WAIT, seen, &kWaitMax, nullptr, 0);
  --waiters_;
}

SortTask SortList::next(WordRange& range, const std::function<bool()>& has_failed) {
  while (true) {
    if (!mutex_.lock()) return SortTask::kFailed;
    const uint32_t seen = news_.load();
    const SortTask task = choose(range);
    const bool is_over = task == SortTask::kNothing && busy_ == 0 && !is_joint_on_;
    mutex_.unlock();
    if (task != SortTask::kNothing || is_over) return task;
    if (has_failed()) return SortTask::kFailed;
    wait(seen);
  }
}

SortTask SortList::choose(WordRange& range) {
  if (is_begun_ && joint_.is_open()) {
    joint_.join();
    return SortTask::kPartition;
  }
  // While one is partitioned that needs no more workers, there may be smaller ones.
  for (size_t i = count_; i-- > 0;) {
    const bool is_for_all = is_joint(ranges_[i]);
    if (is_for_all && is_joint_on_) continue;
    range = ranges_[i];
    std::copy(ranges_ + i + 1, ranges_ + count_, ranges_ + i);
    --count_;
    if (!is_for_all) {
      ++busy_;
      return SortTask::kSort;
    }
    is_joint_on_ = true;
    return SortTask::kBegin;
  }
  return SortTask::kNothing;
}

bool SortList::push(WordRange range) {
  if (!mutex_.lock()) return false;
  const bool has_room = count_ < kPushedMax;
  if (has_room) ranges_[count_++] = range;
  mutex_.unlock();
  if (has_room) tell();
  return has_room;
}

void SortList::done() {
  if (!mutex_.lock()) return;
  BENCH_CHECK(busy_ != 0);
  const bool is_last = --busy_ == 0;
  mutex_.unlock();
  if (is_last) tell();
}

void SortList::begin(WordRange range, uint64_t pivot) {
  if (!mutex_.lock()) return;
  BENCH_CHECK(is_joint_on_ && !is_begun_);
  joint_.begin(range, pivot);
  joint_.join();
  joint_range_ = range;
  is_begun_ = true;
  mutex_.unlock();
  tell();
}

// Blocks for what is used up of the pair. False: there are no more, or the run has failed.
bool SortList::fill(BlockPair& pair) {
  if (!mutex_.lock()) return false;
  if (pair.left.size() == 0) pair.left = joint_.take_left().value_or(WordRange{});
  if (pair.right.size() == 0) pair.right = joint_.take_right().value_or(WordRange{});
  const bool is_full = pair.left.size() != 0 && pair.right.size() != 0;
  mutex_.unlock();
  return is_full;
}

void SortList::take_part(uint64_t* words) {
  const uint64_t pivot = joint_.pivot();  // which stays as long as this worker is in it
  BlockPair pair;
  while (fill(pair)) pair.exchange(words, pivot);
  if (!mutex_.lock()) return;
  const bool is_last = joint_.leave(pair);
  if (is_last) is_begun_ = false;
  mutex_.unlock();
  if (!is_last) return;
  const uint64_t middle = joint_.finish(words);
  WordRange larger{middle, joint_range_.end}, smaller{joint_range_.first, middle};
  if (larger.size() < smaller.size()) std::swap(larger, smaller);
  if (!mutex_.lock()) return;
  BENCH_CHECK(count_ + 2 <= kRangesMax);
  ranges_[count_++] = larger;
  ranges_[count_++] = smaller;
  is_joint_on_ = false;
  mutex_.unlock();
  tell();
}

}  // namespace outcore::bench
