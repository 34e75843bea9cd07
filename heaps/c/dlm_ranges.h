// DlmRanges: which bytes of a growing stretch are free, and how long what was taken is.
//
// Its tables are ordinary memory, so that it never touches what it hands out. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "core/base/range_set.h"

namespace outcore::c {

class DlmRanges {
 public:
  static constexpr uint64_t kUnitBytes = 64;  // sizes are rounded up to it; offsets are multiples

  // The smallest free range that is large enough gives the bytes. None: extend() first.
  // REQUIRES: alignment is a power of two.
  std::optional<uint64_t> take(uint64_t size_bytes, uint64_t alignment);
  // Free again. Its size in bytes; none if nothing begins there.
  std::optional<uint64_t> put(uint64_t offset);
  // Bytes [end, end + size_bytes) come to the stretch. REQUIRES: a multiple of the unit.
  void extend(uint64_t size_bytes);
  uint64_t end() const { return end_; }
  // How much must come so that take() succeeds, whatever is free at the end.
  static uint64_t needed(uint64_t size_bytes, uint64_t alignment);
  bool is_valid() const;

 private:
  base::RangeSet free_;
  std::unordered_map<uint64_t, uint64_t> taken_;  // offset → bytes
  uint64_t end_ = 0;
};

}  // namespace outcore::c
