// DlmRanges: which bytes of a growing stretch are free, and how long what was taken is.
//
// Its tables are ordinary memory, so that it never touches what it hands out. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

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
  void add(uint64_t offset, uint64_t size_bytes);
  void remove(std::map<uint64_t, uint64_t>::iterator range);

  std::map<uint64_t, uint64_t> free_;                     // offset → bytes; no two touch
  std::set<std::pair<uint64_t, uint64_t>> free_by_size_;  // (bytes, offset) of the same
  std::unordered_map<uint64_t, uint64_t> taken_;          // offset → bytes
  uint64_t end_ = 0;
};

}  // namespace outcore::c
