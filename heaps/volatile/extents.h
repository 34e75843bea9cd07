// Extents: which spans of the heap's memory are in use and which are free. A span is found by
// address through a map of system pages; a free span by size, in bins (four for each power of two).
// Free neighbours of the same kind are joined.
//
// Any thread. Free space is first kept for reuse as it is. What exceeds `kept_bytes_max` is given
// back to the heap's memory, oldest first, in batches, by the thread that frees. No lock is locked
// during calls to HeapMemory, except grow(), nor while the memory is touched.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "core/base/assert.h"
#include "heaps/volatile/heap_memory.h"
#include "heaps/volatile/metadata.h"
#include "heaps/volatile/span.h"

namespace outcore::heap {

class Extents {
 public:
  Extents(HeapMemory& heap_memory, Metadata& metadata, uint64_t kept_bytes_max);
  ~Extents();
  Extents(const Extents&) = delete;
  Extents& operator=(const Extents&) = delete;
  int prepare();  // once, first. 0 or -ENOMEM

  struct Wish {
    uint64_t count, alignment;  // units
    bool wants_zero;            // rather what reads zero
    SpanKind kind;
  };
  // A span of this kind, found by its first and last unit. `is_zero` says whether it reads zero. 0
  // or -errno: -ENOMEM (addresses, metadata), -ENOSPC, as the heap's memory says.
  int allocate(const Wish& wish, Span** span, bool* is_zero);
  void free(Span* span);                    // REQUIRES: allocated, and no longer used
  bool grow(Span* span, uint64_t count);    // in place; false: there is no room
  void shrink(Span* span, uint64_t count);  // gives the rest back, if metadata is to be had
  // Gives back all that is free. 0, or the first error of the heap's memory.
  int trim();
  // All units of the span are found, with this mark, which find() gives in the upper byte.
  void mark_all(Span* span, uint8_t mark);

  // The span, and its mark in the upper byte; 0: none. What lies inside of a span that was not
  // marked may be anything.
  uint64_t find(uint64_t unit) const {
    OC_ASSERT(unit < unit_count_);
    return map_[unit].load(std::memory_order_acquire);
  }
  static Span* span_of(uint64_t found) { return reinterpret_cast<Span*>(found & kAddressMask); }
  static uint8_t mark_of(uint64_t found) { return static_cast<uint8_t>(found >> kMarkShift); }

  std::byte* address_of(const Span& span) const { return memory_.base() + span.first * kUnitBytes; }
  struct Sizes {
    uint64_t reserved_bytes, kept_bytes, end_bytes;
  };
  Sizes sizes() const;

 private:
  static constexpr unsigned kMarkShift = 56;
  static constexpr uint64_t kAddressMask = (uint64_t{1} << kMarkShift) - 1;
  static constexpr size_t kBins = 4 * 48;
  struct Bins {
    std::array<Span*, kBins> first{};
    std::array<uint64_t, kBins / 64> used{};
  };
  using Lock = std::unique_lock<std::mutex>;

  static size_t bin_of(uint64_t count);
  uint64_t aligned(uint64_t unit, uint64_t alignment) const;
  Bins& bins(SpanKind kind) {
    return bins_[static_cast<size_t>(kind) - static_cast<size_t>(SpanKind::kKept)];
  }
  void set_edges(Span* span);
  void list(Span* span);
  void unlist(Span* span);
  Span* join(Span* span);
  void put_free(Span* span, SpanKind kind);
  Span* find_free(SpanKind kind, uint64_t count, uint64_t alignment);
  Span* cut(Span* span, uint64_t count, uint64_t alignment);
  Span* neighbour(uint64_t unit);
  void drop(Span* span);
  int grow_memory(Lock& lock, uint64_t count);
  int allocate_once(const Wish& wish, Span** span, bool* is_zero);
  int promise(Lock& lock, Span* found, uint64_t count, uint64_t alignment);
  int allocate_found(const Wish& wish, Span* found, Span** span, bool* is_zero);
  int purge(Lock& lock, uint64_t kept_max);
  bool return_one(Lock& lock, Span* span, int* error);
  void return_fresh(Lock& lock);

  HeapMemory& memory_;
  Metadata& metadata_;
  const uint64_t kept_max_;  // units
  std::atomic<uint64_t>* map_ = nullptr;
  uint64_t unit_count_ = 0;

  mutable std::mutex mutex_;
  std::mutex growing_;
  std::array<Bins, kFreeKinds> bins_;
  Span *oldest_ = nullptr, *newest_ = nullptr;
  uint64_t end_ = 0, reserved_ = 0, kept_ = 0, aged_ = 0;  // units
  bool is_purging_ = false;
};

}  // namespace outcore::heap
