// Runs: a set of tiles as runs, joined where they touch, found by place and by length. For the free
// tiles of a heap, and for those of them that have space in the store. Whoever holds the tiles'
// lock. Its functions may throw std::bad_alloc, and then have changed nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace outcore::heap::persistent {

class Runs {
 public:
  struct Found {
    uint64_t first = 0, count = 0;
  };

  uint64_t tile_count() const { return total_; }
  bool is_empty() const { return by_place_.empty(); }
  const std::map<uint64_t, uint64_t>& all() const { return by_place_; }

  // REQUIRES: none of the tiles is in the set.
  void add(uint64_t first, uint64_t count);
  // Takes out what is in the set of those.
  void remove(uint64_t first, uint64_t count);
  // The shortest run that is long enough, of those the lowest.
  std::optional<Found> find(uint64_t count) const;
  std::optional<Found> last() const;
  // The first run that has tiles in the range, cut to it.
  std::optional<Found> first_in(uint64_t first, uint64_t count) const;

  bool is_valid() const;

 private:
  void put(uint64_t first, uint64_t count);
  void drop(std::map<uint64_t, uint64_t>::iterator run);

  std::map<uint64_t, uint64_t> by_place_;
  std::set<std::pair<uint64_t, uint64_t>> by_length_;  // length, place
  uint64_t total_ = 0;
};

}  // namespace outcore::heap::persistent
