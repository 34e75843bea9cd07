// DisjointSets: which vertices are connected, in an array of parents that many threads change.
//
// A set is a tree; a vertex leads to a smaller one of its set, and its smallest, the root, to
// itself. So the roots at the end do not depend on the order in which vertices were joined, nor on
// the number of threads. Roots are linked by compare-and-swap, and ways are halved as they are
// walked (Anderson and Woll 1991; Jayanti and Tarjan 2016).
#pragma once

#include <cstdint>
#include <span>

namespace outcore::bench {

// Any thread may call anything.
class DisjointSets {
 public:
  // REQUIRES: `parents` outlives the sets; reset() was called for each vertex before it is joined.
  explicit DisjointSets(std::span<uint64_t> parents) : parents_(parents) {}

  void reset(uint64_t vertex) { parents_[vertex] = vertex; }
  // REQUIRES: both are vertices.
  void join(uint64_t a, uint64_t b);
  // The smallest vertex of the set, as far as others have joined by now. REQUIRES: it is a vertex.
  uint64_t root(uint64_t vertex);
  // Makes it lead to its root at once, and returns that. REQUIRES: nobody joins any more.
  uint64_t flatten(uint64_t vertex);

 private:
  std::span<uint64_t> parents_;
};

}  // namespace outcore::bench
