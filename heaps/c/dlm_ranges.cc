#include "heaps/c/dlm_ranges.h"

#include <algorithm>

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

std::optional<uint64_t> DlmRanges::allocate(uint64_t size_bytes, uint64_t alignment) {
  const uint64_t wanted = whole(size_bytes);
  const std::optional<uint64_t> from = free_.take(wanted, std::max(alignment, kUnitBytes));
  if (from) taken_[*from] = wanted;
  return from;
}

std::optional<uint64_t> DlmRanges::free(uint64_t offset) {
  const auto found = taken_.find(offset);
  if (found == taken_.end()) return std::nullopt;
  const uint64_t size_bytes = found->second;
  taken_.erase(found);
  free_.add(offset, size_bytes);
  return size_bytes;
}

void DlmRanges::extend(uint64_t size_bytes) {
  free_.add(end_, size_bytes);
  end_ += size_bytes;
}

bool DlmRanges::is_valid() const {
  uint64_t bytes = free_.total();
  for (const auto& [offset, size_bytes] : taken_) bytes += size_bytes;
  const auto last = free_.last();
  return free_.is_valid() && bytes == end_ && (!last || last->end() <= end_);
}

}  // namespace outcore::c
