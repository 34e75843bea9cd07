// Histogram: how long touches took, in buckets of 6 %. One thread records; merge() joins threads.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "bench/check.h"

namespace outcore::bench {

class Histogram {
 public:
  static constexpr unsigned kSteps = 16;  // buckets of each power of two
  static constexpr size_t kBuckets = 40 * kSteps;

  void record(uint64_t ns) { ++count_[bucket_of(ns)]; }
  void add(size_t bucket, uint64_t count) {
    BENCH_CHECK(bucket < kBuckets);
    count_[bucket] += count;
  }
  void merge(const Histogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) count_[i] += other.count_[i];
  }
  uint64_t count(size_t bucket) const {
    BENCH_CHECK(bucket < kBuckets);
    return count_[bucket];
  }

  // The share (0 … 1) of the touches of `floor_ns` or longer; 0 if there was none.
  double percentile_ns(double share, uint64_t floor_ns) const {
    BENCH_CHECK(share >= 0 && share <= 1);
    uint64_t total = 0;
    const size_t first = bucket_of(floor_ns);
    for (size_t i = first; i < kBuckets; ++i) total += count_[i];
    if (total == 0) return 0;
    const double wanted = share * static_cast<double>(total);
    uint64_t seen = 0;
    for (size_t i = first; i < kBuckets; ++i) {
      seen += count_[i];
      if (static_cast<double>(seen) >= wanted && count_[i] != 0) return middle_of(i);
    }
    return middle_of(kBuckets - 1);
  }

 private:
  static size_t bucket_of(uint64_t ns) {
    if (ns < kSteps) return static_cast<size_t>(ns);
    const unsigned power = static_cast<unsigned>(std::bit_width(ns)) - 5;
    const size_t bucket = power * kSteps + static_cast<size_t>(ns >> power);
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  static double middle_of(size_t bucket) {
    if (bucket < 2 * kSteps) return static_cast<double>(bucket);
    const unsigned power = static_cast<unsigned>(bucket / kSteps) - 1;
    const auto base = static_cast<double>(bucket % kSteps + kSteps);
    return (base + 0.5) * static_cast<double>(uint64_t{1} << power);
  }
  std::array<uint64_t, kBuckets> count_{};
};

}  // namespace outcore::bench
