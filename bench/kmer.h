// Kmer: twenty bases of DNA in one word, two bits each, and the window that slides over a sequence
// to get them. LMAT encodes its k-mers as integers in this way (DI-MMAP paper, section 4.1).
//
// A base is 0 (A), 1 (C), 2 (G) or 3 (T), so that the complement of b is 3 - b. Any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "bench/check.h"

namespace outcore::bench {

inline constexpr uint8_t kNoBase = 4;  // between two sequences, and where a base is not known
inline constexpr unsigned kKmerBases = 20;
inline constexpr unsigned kKmerBits = 2 * kKmerBases;
inline constexpr uint64_t kKmerMask = (uint64_t{1} << kKmerBits) - 1;

constexpr uint8_t complement(uint8_t base) { return static_cast<uint8_t>(3 - base); }

// The same piece of DNA, as it is read from the other strand.
constexpr uint64_t reverse_complement(uint64_t kmer) {
  uint64_t other = 0;
  for (unsigned i = 0; i < kKmerBases; ++i) {
    other = other << 2 | (3 - (kmer & 3));
    kmer >>= 2;
  }
  return other;
}

// One name for both strands, since nobody knows which of them a sequencing machine has read.
constexpr uint64_t canonical(uint64_t kmer) { return std::min(kmer, reverse_complement(kmer)); }

// The last kKmerBases bases of a sequence. It belongs to one thread.
class KmerWindow {
 public:
  // True if there is a whole k-mer by now. REQUIRES: base < 4
  bool push(uint8_t base) {
    BENCH_CHECK(base < 4);
    forward_ = (forward_ << 2 | base) & kKmerMask;
    backward_ = backward_ >> 2 | uint64_t{complement(base)} << (kKmerBits - 2);
    bases_ += bases_ < kKmerBases;
    return bases_ == kKmerBases;
  }
  // What follows is of another sequence.
  void clear() { bases_ = 0; }
  // REQUIRES: the last push() was true
  uint64_t canonical() const {
    BENCH_CHECK(bases_ == kKmerBases);
    return std::min(forward_, backward_);
  }

 private:
  uint64_t forward_ = 0, backward_ = 0;
  unsigned bases_ = 0;
};

// Calls see(k-mer), canonical, for each in such bases, in order.
template <typename See>
void each_kmer(std::span<const uint8_t> bases, See&& see) {
  KmerWindow window;
  for (const uint8_t base : bases) {
    if (base == kNoBase)
      window.clear();
    else if (window.push(base))
      see(window.canonical());
  }
}

}  // namespace outcore::bench
