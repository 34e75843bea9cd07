#include "run/preload/free_ranges.h"

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::preload {

void FreeRanges::put(uint64_t offset, uint64_t end) {
  if (offset == end) return;
  by_offset_[offset] = end;
  by_size_.insert({end - offset, offset});
}

void FreeRanges::drop(std::map<uint64_t, uint64_t>::iterator at) {
  by_size_.erase({at->second - at->first, at->first});
  by_offset_.erase(at);
}

void FreeRanges::give(uint64_t offset, uint64_t size_bytes) {
  uint64_t end = offset + size_bytes;
  const auto next = by_offset_.lower_bound(offset);
  OC_CHECK(next == by_offset_.end() || next->first >= end);
  if (next != by_offset_.begin())
    if (const auto before = std::prev(next); before->second >= offset) {
      OC_CHECK(before->second == offset);
      offset = before->first;
      drop(before);
    }
  if (next != by_offset_.end() && next->first == end) {
    end = next->second;
    drop(next);
  }
  put(offset, end);
}

bool FreeRanges::take(uint64_t size_bytes, uint64_t alignment, uint64_t* offset) {
  for (auto at = by_size_.lower_bound({size_bytes, 0}); at != by_size_.end(); ++at) {
    const auto [free_bytes, start] = *at;
    const uint64_t aligned = base::round_up(start, alignment);
    if (aligned - start > free_bytes - size_bytes) continue;
    *offset = aligned;
    return take_at(aligned, size_bytes);
  }
  return false;
}

bool FreeRanges::take_at(uint64_t offset, uint64_t size_bytes) {
  auto at = by_offset_.upper_bound(offset);
  if (at == by_offset_.begin()) return false;
  --at;
  const uint64_t start = at->first, end = at->second;
  if (end < offset || end - offset < size_bytes) return false;
  drop(at);
  put(start, offset);
  put(offset + size_bytes, end);
  return true;
}

}  // namespace outcore::preload
