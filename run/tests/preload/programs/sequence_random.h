// Random: a seeded generator, and a hash of what was seen.
#pragma once

#include <cstdint>
#include <cstring>

namespace sequence {

// splitmix64: every seed is as good as any other.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // The generator of one step, or of one thread of it: a step does not depend on those before.
  Random(uint64_t seed, uint64_t step, uint64_t part = 0)
      : state_(mixed(mixed(mixed(seed) ^ step) ^ part)) {}

  uint64_t next() { return mixed(state_ += 0x9e3779b97f4a7c15u); }
  // Of 0 … limit - 1. REQUIRES: limit > 0.
  uint64_t below(uint64_t limit) { return next() % limit; }
  bool chance(unsigned percent) { return below(100) < percent; }
  // Of 1 … max, small ones as often as large ones. REQUIRES: max > 0.
  uint64_t size(uint64_t max) {
    const unsigned bits = 64 - static_cast<unsigned>(__builtin_clzll(max));
    const uint64_t reach = uint64_t{1} << (1 + below(bits));
    return 1 + below(reach < max ? reach : max);
  }
  void fill(uint8_t* to, uint64_t count) {
    for (; count >= 8; to += 8, count -= 8) {
      const uint64_t word = next();
      std::memcpy(to, &word, 8);
    }
    const uint64_t word = next();
    std::memcpy(to, &word, count);
  }

 private:
  static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t state_;
};

class Hash {
 public:
  void add(const uint8_t* bytes, uint64_t count) {
    for (; count >= 8; bytes += 8, count -= 8) {
      uint64_t word;
      std::memcpy(&word, bytes, 8);
      add(word);
    }
    for (; count > 0; ++bytes, --count) add(uint64_t{*bytes} | 0x100);
  }
  void add(uint64_t word) {
    value_ = (value_ ^ word) * 0x9fb21c651e98df25u;
    value_ ^= value_ >> 29;
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

}  // namespace sequence
