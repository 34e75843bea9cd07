// WrittenMap: remembers which units of a store were ever written: one bit each, in memory that is
// used only where it is touched.
//
// Any thread, the fault path: each call is a few atomic operations, and none allocates. If a range
// is being written at the same time, the caller must order the calls.
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

  // Covers offsets below `capacity_bytes`, in units of `unit_bytes`; all units are unwritten. 0 or
  // -ENOMEM. REQUIRES: unit_bytes is a power of two; called once.
  int cover(uint64_t capacity_bytes, uint64_t unit_bytes);

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t unit_bytes() const { return uint64_t{1} << unit_shift_; }

  // Marks every unit that the range touches as written. Offsets past the capacity count as written
  // anyway.
  void mark(uint64_t offset, uint64_t size_bytes);
  // Marks units that lie completely inside the range as never written.
  void clear_inside(uint64_t offset, uint64_t size_bytes);
  // Clears the bit of the unit at `offset`; true if it was set.
  bool take(uint64_t offset);

  // True if no unit that the range touches was written. Units past the capacity count as written.
  bool is_untouched(uint64_t offset, uint64_t size_bytes) const;
  bool is_written(uint64_t offset) const { return !is_untouched(offset, 1); }
  // True if every unit that the range touches was written.
  bool is_all_written(uint64_t offset, uint64_t size_bytes) const {
    return is_written(offset) && run_end(offset, offset + size_bytes) == offset + size_bytes;
  }
  // The first offset after `offset`, at most `end`, whose unit differs from that of `offset`.
  uint64_t run_end(uint64_t offset, uint64_t end) const;
  // The first offset from `offset` on whose unit is written; `end` if there is none below it.
  uint64_t next_written(uint64_t offset, uint64_t end) const;

 private:
  using Word = std::atomic<uint64_t>;
  Word* words_ = nullptr;
  size_t map_bytes_ = 0;
  unsigned unit_shift_ = 0;
  uint64_t capacity_bytes_ = 0;
};

}  // namespace outcore::store
