// BlockSums: checksums of the blocks of an array. They are computed while bytes pass, in any order,
// by any number of processes, each of which writes a part.
//
// A block's sum is linear: each 32-bit word of its bytes (little-endian, zeros where nothing is) is
// multiplied by a 64-bit key that depends on its place, and the products are added modulo 2^64:
// multilinear hashing (Lemire and Kaser, "Strongly universal string hashing is fast", 2014). So the
// sums that two processes compute for their parts of a block add up to the sum of the block, if
// every byte was written exactly once. A second sum, `cover`, shows whether it was: each run [from,
// to) adds h(to) - h(from), where h is a random function of places. The ends of neighbouring runs
// cancel out, and h(end) - h(begin) of the block is left exactly if the runs lie side by side
// without gaps and overlaps. A block whose cover differs is read again when the array is finished.
// One thread.
// finished. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arrays/container/box.h"
#include "arrays/container/catalog.h"

namespace outcore::arrays {

// As the container keeps it for an array that is not finished. Those of two processes are added.
struct BlockSum {
  uint64_t sum = 0;
  uint64_t cover = 0;  // of a finished array: mark_of()
};
static_assert(sizeof(BlockSum) == 16);

// The mark that is stored with a sum: it shows whether the stored sum was damaged.
uint64_t mark_of(uint64_t sum, uint64_t block);

// 1 MiB; more if the array would have more than 65,536 blocks.
uint64_t block_bytes_for(uint64_t array_bytes);
uint64_t block_count(const Entry& entry);
// Sums are kept behind the array's bytes: where, and how many bytes they need.
uint64_t sums_offset(const Entry& entry);
inline uint64_t sums_bytes(uint64_t blocks) { return blocks * sizeof(BlockSum); }

class BlockSums {
 public:
  // For the blocks from the one that has byte `first_byte` to the one that has `last_byte`.
  BlockSums(uint64_t block_bytes, uint64_t first_byte, uint64_t last_byte);
  // For all blocks of an array.
  explicit BlockSums(const Entry& entry);

  // Adds runs of bytes. Runs::there, plus `base`, is counted from the array's first byte. Without
  // bytes (nullptr) only the cover is changed.
  void add(uint64_t base, const Runs& runs, const std::byte* bytes);
  void add(uint64_t at, const std::byte* bytes, uint64_t size_bytes);
  void add(const BlockSums& other);  // REQUIRES: its blocks are among these

  std::span<BlockSum> blocks() { return blocks_; }
  std::span<const BlockSum> blocks() const { return blocks_; }

 private:
  uint64_t block_bytes_, first_;
  std::vector<BlockSum> blocks_;
};

// The sum of bytes of one block that begin at offset `at` of their array.
uint64_t sum_of(uint64_t at, std::span<const std::byte> bytes);

// What the cover of each block must be if every element was stored exactly once.
BlockSums full_cover(const Entry& entry);

}  // namespace outcore::arrays
