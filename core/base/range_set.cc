#include "core/base/range_set.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::base {

void RangeSet::put(uint64_t first, uint64_t count) {
  const auto length = by_length_.emplace(count, first).first;
  try {
    by_place_.emplace(first, count);
  } catch (...) {
    by_length_.erase(length);
    throw;  // banned-ok: on to the caller, who knows what to do
  }
  total_ += count;
}

void RangeSet::drop(std::map<uint64_t, uint64_t>::iterator range) {
  by_length_.erase({range->second, range->first});
  total_ -= range->second;
  by_place_.erase(range);
}

void RangeSet::add(uint64_t first, uint64_t count) {
  if (count == 0) return;
  uint64_t from = first, end = first + count;
  auto after = by_place_.lower_bound(first);
  OC_CHECK(after == by_place_.end() || after->first >= end);
  auto before = by_place_.end();
  if (after != by_place_.begin()) {
    before = std::prev(after);
    OC_CHECK(before->first + before->second <= first);
    if (before->first + before->second == first)
      from = before->first;
    else
      before = by_place_.end();
  }
  if (after != by_place_.end() && after->first == end)
    end += after->second;
  else
    after = by_place_.end();
  if (before != by_place_.end()) {  // longer, in its place: nodes are used again
    auto length = by_length_.extract({before->second, before->first});
    length.value() = {end - from, from};
    by_length_.insert(std::move(length));
    total_ += end - from - before->second;
    before->second = end - from;
    if (after != by_place_.end()) drop(after);
    return;
  }
  if (after == by_place_.end()) return put(from, end - from);
  auto length = by_length_.extract({after->second, after->first});
  auto place = by_place_.extract(after);
  total_ += end - from - place.mapped();
  length.value() = {end - from, from};
  place.key() = from;
  place.mapped() = end - from;
  by_length_.insert(std::move(length));
  by_place_.insert(std::move(place));
}

void RangeSet::remove(uint64_t first, uint64_t count) {
  const uint64_t end = first + count;
  while (const std::optional<Range> part = first_in(first, count)) {
    auto run = std::prev(by_place_.upper_bound(part->first));
    const uint64_t run_first = run->first, run_end = run->first + run->second;
    if (run_end > end) put(end, run_end - end);  // what may fail comes first
    if (run_first < part->first) {
      auto length = by_length_.extract({run->second, run->first});
      length.value() = {part->first - run_first, run_first};
      by_length_.insert(std::move(length));
      total_ -= run->second - (part->first - run_first);
      run->second = part->first - run_first;
    } else {
      drop(run);
    }
  }
}

std::optional<uint64_t> RangeSet::take(uint64_t count, uint64_t alignment) {
  OC_CHECK(is_power_of_two(alignment));
  for (auto at = by_length_.lower_bound({count, 0}); at != by_length_.end(); ++at) {
    const auto [length, place] = *at;
    const uint64_t first = round_up(place, alignment);
    if (first - place > length - count) continue;
    remove(first, count);
    return first;
  }
  return std::nullopt;
}

bool RangeSet::take_at(uint64_t first, uint64_t count) {
  const std::optional<Range> found = first_in(first, count);
  if (!found || found->count != count) return false;
  remove(first, count);
  return true;
}

std::optional<RangeSet::Range> RangeSet::find(uint64_t count) const {
  const auto found = by_length_.lower_bound({count, 0});
  if (found == by_length_.end()) return std::nullopt;
  return Range{found->second, found->first};
}

std::optional<RangeSet::Range> RangeSet::last() const {
  if (by_place_.empty()) return std::nullopt;
  return Range{by_place_.rbegin()->first, by_place_.rbegin()->second};
}

std::optional<RangeSet::Range> RangeSet::first_in(uint64_t first, uint64_t count) const {
  const uint64_t end = first + count;
  auto run = by_place_.upper_bound(first);
  if (run != by_place_.begin()) {
    const auto before = std::prev(run);
    if (before->first + before->second > first) run = before;
  }
  if (count == 0 || run == by_place_.end() || run->first >= end) return std::nullopt;
  const uint64_t from = std::max(run->first, first);
  return Range{from, std::min(run->first + run->second, end) - from};
}

std::vector<RangeSet::Range> RangeSet::all_in(uint64_t first, uint64_t count) const {
  std::vector<Range> all;
  const uint64_t end = first + count;
  while (const std::optional<Range> found = first_in(first, end - first)) {
    all.push_back(*found);
    first = found->end();
  }
  return all;
}

bool RangeSet::is_valid() const {
  uint64_t end = 0, total = 0;
  bool is_first = true;
  for (const auto& [first, count] : by_place_) {
    if (count == 0 || (!is_first && first <= end) || !by_length_.contains({count, first}))
      return false;
    end = first + count;
    total += count;
    is_first = false;
  }
  return total == total_ && by_length_.size() == by_place_.size();
}

}  // namespace outcore::base
