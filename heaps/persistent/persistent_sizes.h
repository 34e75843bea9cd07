// Sizes: the cells in which small objects of a persistent heap are allocated, and the slabs that
// contain the cells. They are part of the format: docs/reference/persistent-heap-format.md.
//
// Cells have multiples of 16 bytes up to 128, then four sizes for each doubling up to 64 KiB, so
// that at most a fifth of a cell is lost. A slab consists of whole tiles and has 8 to 4096 cells.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace outcore::heap::persistent {

inline constexpr uint64_t kTileBytes = 64 << 10;  // runs are multiples of it
inline constexpr uint64_t kCellBytesMax = 64 << 10;
inline constexpr unsigned kCellSizes = 8 + 9 * 4;
inline constexpr uint64_t kAlignmentMax = 4096;  // where the heap is mapped is aligned to no more
inline constexpr uint64_t kCellsMin = 8;
inline constexpr uint64_t kWordsMax = kTileBytes / 16 / 64;  // of a slab's bitmap

constexpr uint64_t cell_bytes(unsigned index) {
  if (index < 8) return 16 * (uint64_t{index} + 1);
  return uint64_t{5 + (index - 8) % 4} << ((index - 8) / 4 + 5);
}

// The smallest cell into which the bytes fit. REQUIRES: size_bytes <= kCellBytesMax.
constexpr unsigned cell_index(uint64_t size_bytes) {
  if (size_bytes <= 128) return static_cast<unsigned>((std::max<uint64_t>(size_bytes, 1) - 1) / 16);
  const uint64_t last = size_bytes - 1;
  const auto top = static_cast<unsigned>(63 - std::countl_zero(last));
  return 8 + (top - 7) * 4 + static_cast<unsigned>(last >> (top - 2) & 3);
}

// The same with an alignment, a power of two up to kAlignmentMax. kCellSizes: no cell will do; it
// is a large object.
constexpr unsigned cell_index(uint64_t size_bytes, uint64_t alignment) {
  if (size_bytes > kCellBytesMax) return kCellSizes;
  unsigned index = cell_index(std::max(size_bytes, alignment));
  while (index < kCellSizes && cell_bytes(index) % alignment != 0) ++index;
  return index;
}

constexpr uint64_t slab_tiles(unsigned index) {
  const uint64_t bytes = cell_bytes(index) * kCellsMin;
  return std::bit_ceil((bytes + kTileBytes - 1) / kTileBytes);
}
constexpr uint32_t slab_cells(unsigned index) {
  return static_cast<uint32_t>(slab_tiles(index) * kTileBytes / cell_bytes(index));
}
constexpr uint64_t slab_words(unsigned index) { return (uint64_t{slab_cells(index)} + 63) / 64; }

static_assert(cell_bytes(kCellSizes - 1) == kCellBytesMax);
static_assert(cell_index(0) == 0 && cell_index(16) == 0 && cell_index(17) == 1);
static_assert(cell_index(129) == 8 && cell_bytes(8) == 160 && cell_index(257) == 12);
static_assert(cell_index(kCellBytesMax) == kCellSizes - 1);
static_assert(slab_words(0) == kWordsMax);

}  // namespace outcore::heap::persistent
