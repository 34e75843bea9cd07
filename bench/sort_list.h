// SortList: the ranges of an array that wait to be sorted, in memory that processes share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "bench/partition.h"
#include "bench/robust_mutex.h"

namespace outcore::bench {

// What a worker, which is a thread of any process, is to do next.
enum class SortTask {
  kSort,       // a range is its own: it sorts it, and then calls done()
  kBegin,      // a range that all partition together: it calls begin() with a pivot, and is in it
  kPartition,  // it is in a partition that others are at
  kNothing,    // all is sorted
  kFailed      // the run is over: another process has died, or failed
};

// The newest range first, so that work stays where memory is warm. Large ones are partitioned by
// all workers together, one after another, so that none waits for the first. Nobody waits for a
// process that has died: who waits looks from time to time whether the run has failed.
class SortList {
 public:
  // A worker that finds so many waiting sorts its range itself; the others are for parts of what
  // is partitioned by all, of which few wait, as the smaller one comes first.
  static constexpr size_t kPushedMax = 4096, kRangesMax = kPushedMax + 128;

  // Ranges of `joint_words_min` and more are partitioned together; 0: none.
  SortList(WordRange all, uint64_t joint_words_min);

  // `range` is set for kSort and kBegin.
  SortTask next(WordRange& range, const std::function<bool()>& has_failed);
  bool push(WordRange range);
  void done();
  // Of kBegin: the partition may go on.
  void begin(WordRange range, uint64_t pivot);
  // Of kBegin and kPartition: until all blocks are taken. The last one to go pushes both parts.
  void take_part(uint64_t* words);

 private:
  bool is_joint(const WordRange& range) const {
    return joint_words_min_ != 0 && range.size() >= joint_words_min_;
  }
  SortTask choose(WordRange& range);
  bool fill(BlockPair& pair);
  void tell();
  void wait(uint32_t seen);

  RobustMutex mutex_;
  const uint64_t joint_words_min_;
  std::atomic<uint32_t> news_{0};  // counts what others may wait for
  std::atomic<uint32_t> waiters_{0};
  unsigned busy_ = 0;         // workers that sort a range
  bool is_joint_on_ = false;  // from kBegin until both parts are pushed
  bool is_begun_ = false;
  WordRange joint_range_;
  JointPartition joint_;
  size_t count_ = 0;
  WordRange ranges_[kRangesMax];
};

}  // namespace outcore::bench
