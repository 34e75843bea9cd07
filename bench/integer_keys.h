// IntegerKeys: the keys that the integer sort of the NAS Parallel Benchmarks ranks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/nas_random.h"

namespace outcore::bench {

// Plain values; any thread.
struct IntegerKeys {
  static constexpr unsigned kProbes = 5;
  static constexpr uint64_t kBytesMin = uint64_t{64} << 10;
  static constexpr uint64_t kBytesMax = uint64_t{32} << 30;  // ranks have 32 bits

  uint64_t count = 0;
  unsigned bits = 0;                       // keys are below 2^bits
  std::array<uint64_t, kProbes> probes{};  // keys whose rank is asked for in each pass

  // As NPB has it: S, W, A, B, C; nullopt: another.
  static constexpr std::optional<IntegerKeys> of_class(std::string_view name);
  // As many as fit, of which each has about 16 equals or more, as those of the classes.
  // REQUIRES: kBytesMin <= size_bytes <= kBytesMax
  static IntegerKeys fitting(uint64_t size_bytes);

  constexpr uint64_t limit() const { return uint64_t{1} << bits; }
  // Of the keys, the keys in buckets, and the ranks.
  uint64_t size_bytes() const;

  // The key at `index`, before any pass has changed it. REQUIRES: index < count
  uint32_t at(uint64_t index) const;
  // Calls see(index, key) for those of [first, last), in order.
  template <typename See>
  void make(uint64_t first, uint64_t last, See see) const {
    BENCH_CHECK(first <= last && last <= count);
    NasRandom random;
    random.skip(4 * first);
    for (uint64_t index = first; index < last; ++index) see(index, next_of(random));
  }

  // What a pass, from 1 on, writes to the keys, as NPB does: a small key, and a large one.
  struct Change {
    uint64_t index;
    uint32_t key;
  };
  // REQUIRES: 0 < pass <= passes; 2 * passes < count; passes < limit()
  std::array<Change, 2> changes(unsigned pass, unsigned passes) const;

 private:
  // The mean of four random numbers: limit / 4 times their sum, rounded down.
  uint32_t next_of(NasRandom& random) const {
    uint64_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += random.next();
    return static_cast<uint32_t>(sum >> (NasRandom::kBits + 2 - bits));
  }
};

constexpr std::optional<IntegerKeys> IntegerKeys::of_class(std::string_view name) {
  struct KeyClass {
    std::string_view name;
    unsigned count_bits, bits;
    std::array<uint64_t, kProbes> probes;
  };
  constexpr KeyClass kClasses[] = {
      {"S", 16, 11, {48427, 17148, 23627, 62548, 4431}},
      {"W", 20, 16, {357773, 934767, 875723, 898999, 404505}},
      {"A", 23, 19, {2112377, 662041, 5336171, 3642833, 4250760}},
      {"B", 25, 21, {41869, 812306, 5102857, 18232239, 26860214}},
      {"C", 27, 23, {44172927, 72999161, 74326391, 129606274, 21736814}}};
  for (const KeyClass& one : kClasses)
    if (one.name == name) return IntegerKeys{uint64_t{1} << one.count_bits, one.bits, one.probes};
  return std::nullopt;
}

}  // namespace outcore::bench
