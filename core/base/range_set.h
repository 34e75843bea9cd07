// RangeSet: a set of numbers, kept as ranges that are joined where they touch; can be searched by
// position and by length. Used for free tiles, bytes and addresses. Its own tables are in ordinary
// memory. One thread at a time. Functions that change it may throw std::bad_alloc; add(), and
// remove() of one whole range, have then changed nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace outcore::base {

class RangeSet {
 public:
  struct Range {
    uint64_t first = 0, count = 0;
    uint64_t end() const { return first + count; }
  };

  uint64_t total() const { return total_; }  // how many numbers are in the set
  bool is_empty() const { return by_place_.empty(); }
  const std::map<uint64_t, uint64_t>& all() const { return by_place_; }

  // REQUIRES: none of the numbers is in the set.
  void add(uint64_t first, uint64_t count);
  // Removes those of the numbers that are in the set.
  void remove(uint64_t first, uint64_t count);
  // Removes `count` numbers, the first a multiple of `alignment`, from the shortest range that has
  // them (the lowest of equals), and returns the first. nullopt: no range has them. REQUIRES:
  // `alignment` is a power of two.
  std::optional<uint64_t> take(uint64_t count, uint64_t alignment);
  // Removes exactly these numbers. False: not all are in the set, and nothing has changed.
  bool take_at(uint64_t first, uint64_t count);

  // The shortest range that is long enough; the lowest of equals.
  std::optional<Range> find(uint64_t count) const;
  std::optional<Range> last() const;
  // The first range with numbers in [first, first + count), cut to that; all such ranges.
  std::optional<Range> first_in(uint64_t first, uint64_t count) const;
  std::vector<Range> all_in(uint64_t first, uint64_t count) const;

  bool is_valid() const;

 private:
  void put(uint64_t first, uint64_t count);
  void drop(std::map<uint64_t, uint64_t>::iterator range);

  std::map<uint64_t, uint64_t> by_place_;
  std::set<std::pair<uint64_t, uint64_t>> by_length_;  // length, place
  uint64_t total_ = 0;
};

}  // namespace outcore::base
