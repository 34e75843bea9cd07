// NasRandom: the random numbers of the NAS Parallel Benchmarks (NAS-95-020, section 2.2).
#pragma once

#include <cstdint>

#include "bench/check.h"

namespace outcore::bench {

// x' = 5^13 x mod 2^46, as a fraction of 2^46. There 46 bits are kept in doubles; here in an
// integer, whose multiplication modulo 2^64 leaves the lower bits right: the numbers are the same.
// Each object belongs to one thread; skip() lets each make its part of one sequence.
class NasRandom {
 public:
  static constexpr unsigned kBits = 46;
  static constexpr uint64_t kSeed = 314159265;

  // REQUIRES: the seed is odd and below 2^46, or the sequence would be short
  explicit NasRandom(uint64_t seed = kSeed) : state_(seed) {
    BENCH_CHECK(seed % 2 == 1 && seed <= kMask);
  }

  // The next of the sequence: 1 … 2^46 - 1.
  uint64_t next() { return state_ = state_ * kFactor & kMask; }
  // The same in (0, 1), exactly.
  double unit() { return static_cast<double>(next()) * 0x1p-46; }

  // As `count` calls of next(), in as many steps as `count` has bits.
  void skip(uint64_t count) {
    for (uint64_t power = kFactor; count != 0; count /= 2, power = power * power & kMask)
      if (count % 2 == 1) state_ = state_ * power & kMask;
  }

 private:
  static constexpr uint64_t kFactor = 1'220'703'125;  // 5^13
  static constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  uint64_t state_;
};

}  // namespace outcore::bench
