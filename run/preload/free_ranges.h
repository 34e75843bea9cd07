// FreeRanges: the addresses of the heap that belong to no block. Some are stale: the bytes of the
// block that was there are there still, because who frees a block often allocates one as large
// next, and to let all of its pages go and come in again takes longer than most programs use it.
// The rest reads zero.
//
// One thread at a time. Functions that change it may throw std::bad_alloc; then some of the ranges
// in question are never used again, and none that is stale is taken for empty.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "core/base/range_set.h"

namespace outcore::preload {

class FreeRanges {
 public:
  struct Range {
    uint64_t from = 0, to = 0;
  };

  // What is stale in it stays so, until it is taken, or is the oldest of too much.
  void add(uint64_t from, uint64_t to, const std::vector<Range>& stale = {});
  // So many bytes, the first a multiple of `alignment`; which of them are stale is in `stale`, in
  // order. `prefers_stale`: rather such as were added last. nullopt: there are none.
  std::optional<uint64_t> take(uint64_t bytes, uint64_t alignment, bool prefers_stale,
                               std::vector<Range>* stale);
  // False: not all of the range is free, and nothing has changed.
  bool take_at(uint64_t from, uint64_t to, std::vector<Range>* stale);
  uint64_t stale_bytes() const { return stale_.total(); }
  // Takes the oldest stale ranges, as long as there are too many; all of them.
  std::vector<Range> take_excess(uint64_t bytes_max) {
    return take_oldest(bytes_max, kStaleRangesMax);
  }
  std::vector<Range> take_stale() { return take_oldest(0, 0); }
  // Takes all that is not stale.
  std::vector<Range> take_empty();
  void remove(uint64_t from, uint64_t to);

  bool has_any(uint64_t from, uint64_t to) const {
    return free_.first_in(from, to - from).has_value();
  }
  std::vector<Range> all_in(uint64_t from, uint64_t to) const {
    return ranges_of(free_.all_in(from, to - from));
  }

 private:
  static constexpr size_t kStaleRangesMax = 64;

  static std::vector<Range> ranges_of(const std::vector<base::RangeSet::Range>& ranges);
  std::optional<uint64_t> take_newest(uint64_t bytes, uint64_t alignment);
  std::vector<Range> drop_stale(uint64_t from, uint64_t to);
  std::vector<Range> take_oldest(uint64_t bytes_left, size_t ranges_left);

  base::RangeSet free_, stale_;  // the second is within the first, but for what is lost
  std::deque<Range> order_;      // what is stale, the oldest first
};

}  // namespace outcore::preload
