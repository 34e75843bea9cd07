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
  static std::optional<IntegerKeys> of_class(std::string_view name);
  // As many as fit, of which each has about 16 equals or more, as those of the classes.
  // REQUIRES: kBytesMin <= size_bytes <= kBytesMax
  static IntegerKeys fitting(uint64_t size_bytes);

  uint64_t limit() const { return uint64_t{1} << bits; }
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

}  // namespace outcore::bench
