// BlockSums: checksums of an array's blocks, made while its bytes pass, in any order and by any
// number of processes, each of which has a part.
//
// A block's sum is linear: the 32-bit words of its bytes (little-endian, zeros where nothing is),
// each times a 64-bit key of its place, modulo 2^64, as in multilinear hashing (Lemire and Kaser,
// "Strongly universal string hashing is fast", 2014). So what two processes add for their parts of
// a block is the sum of the block, if every byte was written once. Whether it was is told by a
// second sum, `cover`: each run [from, to) adds h(to) - h(from), with a random function h of
// places. The runs' ends cancel out, and leave h(end) - h(begin) of the block, exactly if the runs
// lie side by side without gaps and overlaps. Where they do not, the block is read again when it is
// finished. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arrays/container/box.h"
#include "arrays/container/catalog.h"

namespace outcore::arrays {

// As in the container, where the array is not finished. Sums of two that add up are added.
struct BlockSum {
  uint64_t sum = 0;
  uint64_t cover = 0;  // of a finished array: mark_of()
};
static_assert(sizeof(BlockSum) == 16);

// Tells a sum that was stored from one that was damaged.
uint64_t mark_of(uint64_t sum, uint64_t block);

// Blocks of 1 MiB, or larger ones if they were more than 65,536.
uint64_t block_bytes_for(uint64_t array_bytes);
uint64_t block_count(const Entry& entry);
// Behind the array's bytes: where the sums are kept, and what they need there.
uint64_t sums_offset(const Entry& entry);
inline uint64_t sums_bytes(uint64_t blocks) { return blocks * sizeof(BlockSum); }

class BlockSums {
 public:
  // Of an array, for the blocks from `first` to the one that has byte `last`.
  BlockSums(uint64_t block_bytes, uint64_t first_byte, uint64_t last_byte);
  // Of the blocks of a whole array.
  explicit BlockSums(const Entry& entry);

  // Runs of bytes, `there` counted from the array's first byte plus `base`. No bytes: the cover
  // alone.
  void add(uint64_t base, const Runs& runs, const std::byte* bytes);
  void add(uint64_t at, const std::byte* bytes, uint64_t size_bytes);
  void add(const BlockSums& other);  // REQUIRES: its blocks are among these

  uint64_t first_block() const { return first_; }
  std::span<BlockSum> blocks() { return blocks_; }
  std::span<const BlockSum> blocks() const { return blocks_; }

 private:
  uint64_t block_bytes_, first_;
  std::vector<BlockSum> blocks_;
};

// The sum of bytes that begin at `at` of their array, within one block.
uint64_t sum_of(uint64_t at, std::span<const std::byte> bytes);

// What the cover of each block is where every element was stored once.
BlockSums full_cover(const Entry& entry);

}  // namespace outcore::arrays
