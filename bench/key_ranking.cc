#include "bench/key_ranking.h"

#include <algorithm>

#include "bench/check.h"
#include "bench/random.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

constexpr unsigned kBucketBitsMax = 10;  // as NPB has
constexpr unsigned kKeysOfABucketBits = 14;

// Each thread fills a page of each bucket at a time. A bucket has 64 KiB or more on average, or a
// budget that is small as the data is would not have room for those pages, and each key would miss.
unsigned bucket_bits(const IntegerKeys& keys) {
  unsigned bits = 0;
  while (bits < std::min(keys.bits, kBucketBitsMax) &&
         keys.count >> (bits + kKeysOfABucketBits) > 1)
    ++bits;
  return bits;
}

}  // namespace

KeyRanking::KeyRanking(const IntegerKeys& keys, unsigned threads)
    : keys_(keys),
      threads_(threads),
      shift_(keys.bits - bucket_bits(keys)),
      buckets_(uint64_t{1} << bucket_bits(keys)),
      next_(threads * buckets_),
      end_(threads * buckets_),
      starts_(buckets_ + 1) {
  BENCH_CHECK(threads != 0 && keys.count != 0 && keys.count < uint64_t{1} << 32);
}

template <typename Work>
void KeyRanking::on_buckets(Work work) {
  std::atomic<uint64_t> next{0};
  on_threads(threads_, [&](unsigned) {
    for (uint64_t bucket = next++; bucket < buckets_; bucket = next++) work(bucket);
  });
}

void KeyRanking::count(const KeyArrays& arrays, unsigned thread) {
  uint32_t* const counts = next_.data() + thread * buckets_;
  std::fill_n(counts, buckets_, 0U);
  for (uint64_t i = first_of(thread); i < first_of(thread + 1); ++i)
    ++counts[bucket_of(arrays.keys[i])];
}

// In a bucket come the keys of the first thread, then those of the second.
void KeyRanking::sum_up() {
  uint64_t sum = 0;
  for (uint64_t bucket = 0; bucket < buckets_; ++bucket) {
    starts_[bucket] = sum;
    for (unsigned thread = 0; thread < threads_; ++thread) {
      const uint64_t at = thread * buckets_ + bucket;
      const uint32_t keys = next_[at];
      next_[at] = static_cast<uint32_t>(sum);
      end_[at] = static_cast<uint32_t>(sum += keys);
    }
  }
  starts_[buckets_] = sum;
  BENCH_CHECK(sum == keys_.count);
}

void KeyRanking::scatter(const KeyArrays& arrays, unsigned thread) {
  uint32_t* const next = next_.data() + thread * buckets_;
  const uint32_t* const end = end_.data() + thread * buckets_;
  uint64_t misplaced = 0;
  for (uint64_t i = first_of(thread); i < first_of(thread + 1); ++i) {
    const uint32_t key = arrays.keys[i];
    const uint64_t bucket = bucket_of(key);
    if (next[bucket] == end[bucket])
      ++misplaced;  // it was another key when it was counted
    else
      arrays.buckets[next[bucket]++] = key;
  }
  misplaced_ += misplaced;
}

void KeyRanking::rank_bucket(const KeyArrays& arrays, uint64_t bucket) {
  const uint64_t width = uint64_t{1} << shift_;
  const auto first_key = static_cast<uint32_t>(bucket << shift_);
  uint32_t* const ranks = arrays.ranks + first_key;
  std::fill_n(ranks, width, 0U);
  uint64_t misplaced = 0;
  for (uint64_t i = starts_[bucket]; i < starts_[bucket + 1]; ++i) {
    const uint32_t within = arrays.buckets[i] - first_key;
    if (within < width)
      ++ranks[within];
    else
      ++misplaced;
  }
  auto sum = static_cast<uint32_t>(starts_[bucket]);
  for (uint64_t i = 0; i < width; ++i) ranks[i] = sum += ranks[i];
  misplaced_ += misplaced;
}

void KeyRanking::rank(const KeyArrays& arrays, const std::function<void(uint64_t)>& see) {
  on_threads(threads_, [&](unsigned thread) { count(arrays, thread); });
  sum_up();
  on_threads(threads_, [&](unsigned thread) { scatter(arrays, thread); });
  on_buckets([&](uint64_t bucket) {
    rank_bucket(arrays, bucket);
    see(starts_[bucket + 1] - starts_[bucket]);
  });
}

void KeyRanking::sort_bucket(const KeyArrays& arrays, uint64_t bucket) {
  uint64_t misplaced = 0;
  for (uint64_t i = starts_[bucket]; i < starts_[bucket + 1]; ++i) {
    const uint32_t key = arrays.buckets[i];
    const bool is_here = key < keys_.limit() && bucket_of(key) == bucket;
    const uint64_t place = is_here ? --arrays.ranks[key] : keys_.count;
    if (place < keys_.count)
      arrays.keys[place] = key;
    else
      ++misplaced;
  }
  misplaced_ += misplaced;
}

void KeyRanking::sort(const KeyArrays& arrays) {
  on_buckets([&](uint64_t bucket) { sort_bucket(arrays, bucket); });
}

uint64_t KeyRanking::order_hash(const uint32_t* keys) const {
  std::atomic<uint64_t> sum{0};
  on_threads(threads_, [&](unsigned thread) {
    uint64_t part = 0;
    for (uint64_t i = first_of(thread); i < first_of(thread + 1); ++i)
      part += mix(i << 32 | keys[i]);
    sum += part;
  });
  return sum.load();
}

}  // namespace outcore::bench
