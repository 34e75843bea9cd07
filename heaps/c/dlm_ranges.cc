#include "heaps/c/dlm_ranges.h"

#include <algorithm>
#include <iterator>

#include "core/base/units.h"

namespace outcore::c {

using base::round_up;

namespace {

uint64_t whole(uint64_t size_bytes) {
  return round_up(std::max<uint64_t>(size_bytes, 1), DlmRanges::kUnitBytes);
}

}  // namespace

uint64_t DlmRanges::needed(uint64_t size_bytes, uint64_t alignment) {
  return whole(size_bytes) + std::max(alignment, kUnitBytes);
}

std::optional<uint64_t> DlmRanges::take(uint64_t size_bytes, uint64_t alignment) {
  const uint64_t wanted = whole(size_bytes);
  alignment = std::max(alignment, kUnitBytes);
  for (auto at = free_by_size_.lower_bound({wanted, 0}); at != free_by_size_.end(); ++at) {
    const auto [free_bytes, offset] = *at;
    const uint64_t from = round_up(offset, alignment);
    if (from + wanted > offset + free_bytes) continue;
    remove(free_.find(offset));
    if (from > offset) add(offset, from - offset);
    if (from + wanted < offset + free_bytes)
      add(from + wanted, offset + free_bytes - from - wanted);
    taken_[from] = wanted;
    return from;
  }
  return std::nullopt;
}

std::optional<uint64_t> DlmRanges::put(uint64_t offset) {
  const auto found = taken_.find(offset);
  if (found == taken_.end()) return std::nullopt;
  const uint64_t size_bytes = found->second;
  taken_.erase(found);
  add(offset, size_bytes);
  return size_bytes;
}

void DlmRanges::extend(uint64_t size_bytes) {
  add(end_, size_bytes);
  end_ += size_bytes;
}

void DlmRanges::add(uint64_t offset, uint64_t size_bytes) {
  const auto after = free_.lower_bound(offset);
  if (after != free_.end() && after->first == offset + size_bytes) {
    size_bytes += after->second;
    remove(after);
  }
  const auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      offset = before->first;
      size_bytes += before->second;
      remove(before);
    }
  }
  free_[offset] = size_bytes;
  free_by_size_.insert({size_bytes, offset});
}

void DlmRanges::remove(std::map<uint64_t, uint64_t>::iterator range) {
  free_by_size_.erase({range->second, range->first});
  free_.erase(range);
}

bool DlmRanges::is_valid() const {
  uint64_t bytes = 0, last = 0;
  bool is_first = true;
  for (const auto& [offset, size_bytes] : free_) {
    if (!is_first && offset <= last) return false;  // neighbours are joined
    if (!free_by_size_.contains({size_bytes, offset})) return false;
    is_first = false;
    last = offset + size_bytes;
    bytes += size_bytes;
  }
  for (const auto& [offset, size_bytes] : taken_) bytes += size_bytes;
  return bytes == end_ && last <= end_ && free_.size() == free_by_size_.size();
}

}  // namespace outcore::c
