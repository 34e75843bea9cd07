// Partition: the step of quicksort, by one thread alone or by the workers of several processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace outcore::bench {

// Words of an array, by their numbers: processes have the array at different addresses.
struct WordRange {
  uint64_t first = 0, end = 0;
  uint64_t size() const { return end - first; }
  std::span<uint64_t> in(uint64_t* words) const { return {words + first, end - first}; }
};

// The median of nine words spread over the range. REQUIRES: it is not empty
uint64_t pivot_of(std::span<const uint64_t> range);

// Hoare's partition: words of [0, result) are <= those of [result, size). Both parts are smaller
// than the whole. REQUIRES: two words or more
size_t partition(std::span<uint64_t> range);

// One block from the left and one from the right, of which words are exchanged until all of one
// are on their side of `pivot`; what is left of each is still to be looked at.
struct BlockPair {
  WordRange left, right;
  void exchange(uint64_t* words, uint64_t pivot);
};

// JointPartition: Hoare's partition of one range by several workers at once, in blocks of which
// each takes some from both ends (Tsigas and Zhang, PDP 2003). Plain values, which may lie in
// memory that processes share; one caller at a time, but where it says that it needs no lock.
class JointPartition {
 public:
  static constexpr uint64_t kBlockWords = 32 * 1024;  // 256 KiB
  static constexpr unsigned kWorkersMax = 64;
  // Smaller ranges are not worth it: what workers leave unfinished is done by one of them alone.
  static uint64_t words_min(unsigned workers) { return kBlockWords * 8 * workers; }

  void begin(WordRange range, uint64_t pivot);
  uint64_t pivot() const { return pivot_; }
  // Nobody else need come: all blocks are taken, or it has as many workers as it may have.
  bool is_open() const { return workers_ < kWorkersMax && middle_.size() >= kBlockWords; }
  // A further worker. REQUIRES: is_open()
  void join() { ++workers_; }
  // The next block of a side; none if less than one is left.
  std::optional<WordRange> take_left();
  std::optional<WordRange> take_right();
  // A worker goes, and leaves what it has not finished. True if it was the last, and all blocks
  // are taken: then it calls finish().
  bool leave(const BlockPair& unfinished);
  // The last worker brings in order what the others left, without a lock. Words of [first, result)
  // are <= those of [result, end), and both parts are smaller than the whole.
  uint64_t finish(uint64_t* words);

 private:
  struct Leftovers {
    uint64_t firsts[kWorkersMax];
    unsigned count = 0;
  };
  WordRange whole_, middle_;  // what is to be partitioned; what nobody has taken of it
  uint64_t pivot_ = 0;
  unsigned workers_ = 0;
  Leftovers left_, right_;  // blocks that are not finished, by their first words
};

}  // namespace outcore::bench
