#include "run/preload/free_ranges.h"

#include "core/base/assert.h"

namespace outcore::preload {

std::vector<FreeRanges::Range> FreeRanges::ranges_of(
    const std::vector<base::RangeSet::Range>& ranges) {
  std::vector<Range> all;
  all.reserve(ranges.size());
  for (const auto& r : ranges) all.push_back({r.first, r.end()});
  return all;
}

// First what is stale: a free range that is not empty must not look so.
void FreeRanges::add(uint64_t from, uint64_t to, const std::vector<Range>& stale) {
  OC_CHECK(from < to);
  for (const Range& r : stale) {
    OC_CHECK(from <= r.from && r.from < r.to && r.to <= to);
    stale_.add(r.from, r.to - r.from);
    order_.push_back(r);
  }
  free_.add(from, to - from);
}

std::optional<uint64_t> FreeRanges::take(uint64_t bytes, uint64_t alignment, bool prefers_stale,
                                         std::vector<Range>* stale) {
  OC_CHECK(bytes != 0);
  std::optional<uint64_t> found =
      prefers_stale ? take_newest(bytes, alignment) : std::optional<uint64_t>();
  if (!found) found = free_.take(bytes, alignment);
  if (found) *stale = drop_stale(*found, *found + bytes);
  return found;
}

// One that is large enough, and not twice as large.
std::optional<uint64_t> FreeRanges::take_newest(uint64_t bytes, uint64_t alignment) {
  for (auto r = order_.rbegin(); r != order_.rend(); ++r) {
    const uint64_t length = r->to - r->from;
    if (length >= bytes && length < 2 * bytes && r->from % alignment == 0 &&
        free_.take_at(r->from, bytes))
      return r->from;
  }
  return std::nullopt;
}

bool FreeRanges::take_at(uint64_t from, uint64_t to, std::vector<Range>* stale) {
  OC_CHECK(from < to);
  if (!free_.take_at(from, to - from)) return false;
  *stale = drop_stale(from, to);
  return true;
}

std::vector<FreeRanges::Range> FreeRanges::drop_stale(uint64_t from, uint64_t to) {
  std::vector<Range> dropped = ranges_of(stale_.all_in(from, to - from));
  if (dropped.empty()) return dropped;
  for (size_t i = order_.size(); i-- > 0;) {
    Range& r = order_[i];
    if (r.to <= from || r.from >= to) continue;
    const Range before{r.from, from}, behind{to, r.to};
    if (behind.from < behind.to) {
      r = behind;
      if (before.from < before.to)
        order_.insert(order_.begin() + static_cast<ptrdiff_t>(i), before);
    } else if (before.from < before.to) {
      r = before;
    } else {
      order_.erase(order_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  stale_.remove(from, to - from);
  return dropped;
}

std::vector<FreeRanges::Range> FreeRanges::take_oldest(uint64_t bytes_left, size_t ranges_left) {
  std::vector<Range> taken;
  while (!order_.empty() && (stale_.total() > bytes_left || order_.size() > ranges_left)) {
    const Range oldest = order_.front();
    taken.reserve(taken.size() + 1);
    const bool is_free = free_.take_at(oldest.from, oldest.to - oldest.from);
    stale_.remove(oldest.from, oldest.to - oldest.from);
    order_.pop_front();
    if (is_free) taken.push_back(oldest);  // else it is lost
  }
  return taken;
}

std::vector<FreeRanges::Range> FreeRanges::take_empty() {
  std::vector<Range> empty;
  for (const auto& [first, count] : free_.all()) {
    uint64_t at = first;
    for (const Range& r : ranges_of(stale_.all_in(first, count))) {
      if (at < r.from) empty.push_back({at, r.from});
      at = r.to;
    }
    if (at < first + count) empty.push_back({at, first + count});
  }
  for (const Range& r : empty) free_.remove(r.from, r.to - r.from);
  return empty;
}

void FreeRanges::remove(uint64_t from, uint64_t to) {
  if (from >= to) return;
  free_.remove(from, to - from);
  drop_stale(from, to);
}

}  // namespace outcore::preload
