// SizeClass: the sizes of small blocks: four for each doubling, as in jemalloc, so that at most a
// fifth of a block is lost. Class 0 is not used.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "heaps/volatile/span.h"

namespace outcore::heap {

inline constexpr size_t kSmallBytesMax = size_t{32} << 10;

struct SizeClass {
  uint32_t block_bytes = 0;
  uint32_t slab_units = 0;   // system pages of a slab
  uint32_t block_count = 0;  // of a slab
  uint32_t inverse = 0;      // ceil(2^32 / block_bytes): index = offset * inverse >> 32
  uint32_t cached_max = 0;   // blocks that a thread keeps
};

namespace size_class_detail {

constexpr size_t kCount = 1 + 8 + 4 * 8;  // 0; 16 … 128 by 16; four a doubling up to 32 KiB

constexpr std::array<SizeClass, kCount> make() {
  std::array<SizeClass, kCount> all{};
  size_t n = 1;
  const auto add = [&](uint32_t bytes) {
    SizeClass& c = all[n++];
    c.block_bytes = bytes;
    const uint32_t wanted = std::max<uint32_t>(64 << 10, bytes * 8);
    c.slab_units = static_cast<uint32_t>((wanted + kUnitBytes - 1) / kUnitBytes);
    c.block_count = static_cast<uint32_t>(c.slab_units * kUnitBytes / bytes);
    c.inverse = static_cast<uint32_t>(((uint64_t{1} << 32) + bytes - 1) / bytes);
    c.cached_max = std::clamp<uint32_t>((64 << 10) / bytes, 8, 128);
  };
  for (uint32_t bytes = 16; bytes <= 128; bytes += 16) add(bytes);
  for (uint32_t base = 128; base < kSmallBytesMax; base *= 2)
    for (uint32_t i = 1; i <= 4; ++i) add(base + base / 4 * i);
  return all;
}

}  // namespace size_class_detail

inline constexpr size_t kSizeClasses = size_class_detail::kCount;
inline constexpr auto kSizes = size_class_detail::make();
inline constexpr size_t kBlocksMax = (64 << 10) / 16;  // of a slab

// The smallest class whose blocks are large enough. REQUIRES: 0 < bytes <= kSmallBytesMax.
constexpr uint8_t class_of(size_t bytes) {
  if (bytes <= 128) return static_cast<uint8_t>((bytes + 15) / 16);
  const auto doubling = static_cast<unsigned>(std::bit_width(bytes - 1) - 1);  // 7 …
  const size_t quarter = (bytes - 1) >> (doubling - 2) & 3;
  return static_cast<uint8_t>(9 + (doubling - 7) * 4 + quarter);
}
// The same for blocks at multiples of `alignment`, a power of two. 0: no class has them.
constexpr uint8_t class_of(size_t bytes, size_t alignment) {
  if (std::max(bytes, alignment) > kSmallBytesMax || alignment > kUnitBytes) return 0;
  uint8_t c = class_of(std::max(bytes, alignment));
  while (kSizes[c].block_bytes % alignment != 0) ++c;  // ends at a power of two
  return c;
}

static_assert(class_of(1) == 1 && class_of(128) == 8 && class_of(129) == 9);
static_assert(kSizes[class_of(129)].block_bytes == 160 && kSizes[9 + 3].block_bytes == 256);
static_assert(kSizes[class_of(257)].block_bytes == 320 && class_of(256) == 12);
static_assert(kSizes[kSizeClasses - 1].block_bytes == kSmallBytesMax);
static_assert(class_of(kSmallBytesMax) == kSizeClasses - 1);

}  // namespace outcore::heap
