// Random: numbers that a seed repeats. Each object belongs to one thread; the functions to any.
#pragma once

#include <cstdint>

#include "bench/check.h"

namespace outcore::bench {

// A bijection of 64 bits (splitmix64, Steele et al. 2014): equal inputs only give equal outputs.
constexpr uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}
  uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15); }
  // Uniform in [0, n), by multiplication (Lemire 2019); the bias is below n / 2^64.
  uint64_t below(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

// Permutation: a bijection of [0, n) in no order that readahead could guess.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed) : n_(n), seed_(mix(seed) | 1) {
    BENCH_CHECK(n != 0);
    while ((uint64_t{1} << bits_) < n) ++bits_;
    mask_ = bits_ == 64 ? ~uint64_t{0} : (uint64_t{1} << bits_) - 1;
  }
  // REQUIRES: i < n. Walks the cycle of a bijection of the next power of two until it is back
  // inside.
  uint64_t operator()(uint64_t i) const {
    do {
      i = round(round(i));
    } while (i >= n_);
    return i;
  }

 private:
  uint64_t round(uint64_t x) const {
    const unsigned half = bits_ / 2 + 1;
    x = (x * (seed_ * 2 + 1)) & mask_;
    x = (x ^ (x >> half)) & mask_;
    x = (x + seed_) & mask_;
    x = (x * 0xD6E8FEB86659FD93) & mask_;
    return (x ^ (x >> half)) & mask_;
  }
  uint64_t n_, seed_, mask_ = 0;
  unsigned bits_ = 1;
};

}  // namespace outcore::bench
