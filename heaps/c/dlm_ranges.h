// DlmRanges: which bytes of a growing range of memory are free, and how long each allocated piece
// is.
//
// Its tables are in ordinary memory, so it never touches the memory that it hands out. One thread
// at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "core/base/range_set.h"

namespace outcore::c {

class DlmRanges {
 public:
  static constexpr uint64_t kUnitBytes = 64;  // sizes are rounded up to it; offsets are multiples

  // Allocates from the smallest free range that is large enough, and returns the offset. Empty:
  // there is none; call extend() first. REQUIRES: alignment is a power of two.
  std::optional<uint64_t> allocate(uint64_t size_bytes, uint64_t alignment);
  // Frees what was allocated at the offset, and returns its size in bytes. Empty: nothing begins
  // there.
  std::optional<uint64_t> free(uint64_t offset);
  // The bytes [end, end + size_bytes) are added. REQUIRES: a multiple of the unit.
  void extend(uint64_t size_bytes);
  uint64_t end() const { return end_; }
  // How many bytes to add so that allocate() succeeds, whatever is free at the end.
  static uint64_t needed(uint64_t size_bytes, uint64_t alignment);
  bool is_valid() const;

 private:
  base::RangeSet free_;
  std::unordered_map<uint64_t, uint64_t> taken_;  // offset → bytes
  uint64_t end_ = 0;
};

}  // namespace outcore::c
