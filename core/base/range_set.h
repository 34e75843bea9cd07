// RangeSet: a set of numbers as ranges, joined where they touch, found by place and by length: what
// tiles of a heap, bytes of an array's stretch or addresses are free. It is ordinary memory, and
// never touches what it counts. One thread at a time. Functions that change it may throw
// std::bad_alloc; add() and a remove() of one whole range have then changed nothing.
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
  // Takes out what is in the set of those.
  void remove(uint64_t first, uint64_t count);
  // Takes out `count` numbers that begin at a multiple of `alignment`: the first of them. They are
  // of the shortest range that has them, of such ranges of the lowest. nullopt: there is none.
  // REQUIRES: `alignment` is a power of two.
  std::optional<uint64_t> take(uint64_t count, uint64_t alignment);
  // Takes out these very numbers. False: not all are in the set, and then nothing has changed.
  bool take_at(uint64_t first, uint64_t count);

  // The shortest range that is long enough, of those the lowest.
  std::optional<Range> find(uint64_t count) const;
  std::optional<Range> last() const;
  // The first range that has numbers in [first, first + count), cut to it; all of them.
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
