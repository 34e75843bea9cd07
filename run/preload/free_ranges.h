// FreeRanges: which parts of a range of addresses are free, neighbours joined. Plain data: the
// caller has a lock.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace outcore::preload {

class FreeRanges {
 public:
  // REQUIRES: none of it is free already.
  void give(uint64_t offset, uint64_t size_bytes);
  // The smallest range that has room, and of several such the first. False: there is none.
  // REQUIRES: `alignment` is a power of two.
  bool take(uint64_t size_bytes, uint64_t alignment, uint64_t* offset);
  // This very range. False: some of it is not free, and then nothing has changed.
  bool take_at(uint64_t offset, uint64_t size_bytes);
  // Calls f(offset, end) for what is free in the range.
  template <typename F>
  void for_each(uint64_t from, uint64_t to, const F& f) const {
    auto at = by_offset_.upper_bound(from);
    if (at != by_offset_.begin() && std::prev(at)->second > from) --at;
    for (; at != by_offset_.end() && at->first < to; ++at)
      f(at->first > from ? at->first : from, at->second < to ? at->second : to);
  }

 private:
  void put(uint64_t offset, uint64_t end);
  void drop(std::map<uint64_t, uint64_t>::iterator at);

  std::map<uint64_t, uint64_t> by_offset_;           // offset → end
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // (size, offset)
};

}  // namespace outcore::preload
