// KeyRanking: ranks integer keys by counting them in buckets, on several threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "bench/integer_keys.h"

namespace outcore::bench {

// Where they lie: two arrays of all keys, and one of 2^bits. After rank() ranks[k] is how many keys
// are at most k, and the keys of a bucket lie side by side in `buckets`.
struct KeyArrays {
  uint32_t *keys, *buckets, *ranks;
};

// One thread calls; it starts the others. What it allocates it does when it is made.
// Whatever the arrays hold, no call goes beyond them: damaged data is a wrong answer, and no crash.
class KeyRanking {
 public:
  // REQUIRES: threads != 0
  KeyRanking(const IntegerKeys& keys, unsigned threads);

  // `see` is told by the threads how many keys have been ranked.
  void rank(const KeyArrays& arrays, const std::function<void(uint64_t)>& see);
  // Puts the keys in order, by the ranks of the last rank(), which are used up.
  void sort(const KeyArrays& arrays);
  // Of the keys of an array: the same for any number of threads.
  uint64_t order_hash(const uint32_t* keys) const;
  // Keys out of their bucket, or with a rank that is none: of data that was damaged.
  uint64_t misplaced() const { return misplaced_.load(); }

 private:
  uint64_t first_of(unsigned thread) const { return keys_.count * thread / threads_; }
  // The bits above those of keys are left away: a damaged key has a bucket, too.
  uint64_t bucket_of(uint32_t key) const { return (key & (keys_.limit() - 1)) >> shift_; }
  void count(const KeyArrays& arrays, unsigned thread);
  void sum_up();
  void scatter(const KeyArrays& arrays, unsigned thread);
  void rank_bucket(const KeyArrays& arrays, uint64_t bucket);
  void sort_bucket(const KeyArrays& arrays, uint64_t bucket);
  // Calls work(bucket) for all, whoever is free the next.
  template <typename Work>
  void on_buckets(Work work);

  IntegerKeys keys_;
  unsigned threads_, shift_;
  uint64_t buckets_;
  // For each thread and bucket: how many keys; then where the next one goes, and where the end is.
  std::vector<uint32_t> next_, end_;
  std::vector<uint64_t> starts_;  // of the buckets, and the end
  std::atomic<uint64_t> misplaced_{0};
};

}  // namespace outcore::bench
