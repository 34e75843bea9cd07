// Random: a small seeded generator (splitmix64). The same seed gives the same numbers everywhere.
#pragma once

#include <cstdint>

namespace outcore::sim {

class Random {
 public:
  // Seeds that differ little give unrelated numbers.
  explicit Random(uint64_t seed) : state_(seed) { state_ = next() ^ seed << 32; }

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }
  // 0 … n - 1. REQUIRES: n > 0.
  uint64_t below(uint64_t n) { return next() % n; }
  uint64_t between(uint64_t least, uint64_t most) { return least + below(most - least + 1); }
  bool chance(uint64_t permille) { return permille != 0 && below(1000) < permille; }
  template <typename T, uint64_t N>
  const T& one_of(const T (&choices)[N]) {
    return choices[below(N)];
  }

 private:
  uint64_t state_;
};

}  // namespace outcore::sim
