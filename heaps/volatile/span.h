// Span: a run of system pages of a heap: a large block, a slab of small ones, or free.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::heap {

inline constexpr uint64_t kUnitBytes = 4096;  // the system page: spans are multiples of it

enum class SpanKind : uint8_t {
  kBusy,      // in the hands of one thread, in no list
  kLarge,     // one block
  kSlab,      // small blocks of one size class
  kKept,      // free; holds anything, and its space
  kFresh,     // free; reads zero, and has space
  kReturned,  // free; reads zero, without space
};
inline constexpr size_t kFreeKinds = 3;
constexpr bool is_free(SpanKind kind) { return kind >= SpanKind::kKept; }

struct Span {
  uint64_t first = 0, count = 0;            // units
  Span *next = nullptr, *prev = nullptr;    // of a bin: free ones by size, or slabs with room
  Span *older = nullptr, *newer = nullptr;  // kept ones by age
  SpanKind kind = SpanKind::kBusy;
  uint8_t size_class = 0;                    // of a slab; 0 else
  bool is_aged = false;                      // among those by age
  uint32_t free_count = 0, block_count = 0;  // of a slab
  uint32_t hint = 0;                         // no word of `free_bits` before it has a bit
  uint64_t* free_bits = nullptr;             // of a slab: a bit for each free block

  uint64_t end() const { return first + count; }
  uint64_t size_bytes() const { return count * kUnitBytes; }
};

}  // namespace outcore::heap
