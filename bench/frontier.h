// Frontier: the vertices that a search visits in one level, and those it has found for the next.
#pragma once

#include <cstdint>
#include <vector>

namespace outcore::bench {

// Any thread adds and takes; one thread calls next_level() while no other is at work.
class Frontier {
 public:
  virtual ~Frontier() = default;
  // Finds a vertex. REQUIRES: no thread has added it before; two calls of the same `thread` are
  // not at the same time.
  virtual void add(unsigned thread, uint64_t vertex) = 0;
  // What was found becomes what is visited; false if nothing was.
  virtual bool next_level() = 0;
  // The next portion of those to visit, ascending; it may be empty. False if there is no other.
  virtual bool take(std::vector<uint64_t>& vertices) = 0;
};

}  // namespace outcore::bench
