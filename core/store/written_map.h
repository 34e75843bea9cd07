// WrittenMap: which units of a store were ever written: one bit each, in memory that costs nothing
// untouched.
//
// Any thread, the fault path too: every call is a few atomic operations, none allocates. Bits are
// atomic; what they say about a range that is being written at the same time is the caller's to
// order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace outcore::store {

class WrittenMap {
 public:
  WrittenMap() = default;
  ~WrittenMap();
  WrittenMap(const WrittenMap&) = delete;
  WrittenMap& operator=(const WrittenMap&) = delete;

  // Covers offsets below `capacity_bytes`, in units of `unit_bytes`; nothing is written yet. 0 or
  // -ENOMEM. REQUIRES: unit_bytes is a power of two; not covered yet.
  int cover(uint64_t capacity_bytes, uint64_t unit_bytes);

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t unit_bytes() const { return uint64_t{1} << unit_shift_; }

  // Every unit that the range touches counts as written. Offsets past the capacity need no mark:
  // see below.
  void mark(uint64_t offset, uint64_t size_bytes);
  // Units wholly inside the range count as never written.
  void clear_inside(uint64_t offset, uint64_t size_bytes);
  // Clears the bit of the unit at `offset`; true if it was set.
  bool take(uint64_t offset);

  // True if no unit that the range touches was written. Past the capacity everything counts as
  // written.
  bool is_untouched(uint64_t offset, uint64_t size_bytes) const;
  bool is_written(uint64_t offset) const { return !is_untouched(offset, 1); }
  // First offset after `offset`, at most `end`, whose unit differs from that of `offset`.
  uint64_t run_end(uint64_t offset, uint64_t end) const;
  // First offset at or after `offset` whose unit is written; `end` if there is none below it.
  uint64_t next_written(uint64_t offset, uint64_t end) const;

 private:
  using Word = std::atomic<uint64_t>;
  Word* words_ = nullptr;
  size_t map_bytes_ = 0;
  unsigned unit_shift_ = 0;
  uint64_t capacity_bytes_ = 0;
};

}  // namespace outcore::store
