// Box: a part of an N-dimensional array, and how its bytes lie in the container and in the
// program's memory: in runs that are contiguous on both sides.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/assert.h"
#include "outcore/arrays.h"
#include "outcore/result.h"

namespace outcore::arrays {

inline constexpr size_t kDimsMax = 32;
inline constexpr uint64_t kBytesMax = uint64_t{1} << 62;  // of an array, at most

// "2 x 3 x 4", for messages.
std::string text_of(const Dims& dims);
// How many elements the box has. EINVAL: their bytes are too many, or there are more than 32
// dimensions.
Result<uint64_t> count_of(const Dims& dims, uint64_t element_bytes);
// EINVAL: the number of dimensions differs, or the box is not inside of the shape; the message says
// what is allowed.
Status check_box(const std::string& attempted, const Dims& shape, const Dims& offsets,
                 const Dims& dims);

// One of several nested loops; the outermost comes first.
struct Loop {
  uint64_t count = 0, there = 0, here = 0;  // repeated `count` times, each time so many bytes on
};

// All runs of a copy. `there` is the offset in the container, `here` the one in the program's
// memory; both count bytes from the first byte of the array on that side.
struct Runs {
  uint64_t there = 0, here = 0;
  uint64_t run_bytes = 0;
  std::vector<Loop> loops;

  uint64_t count() const {
    uint64_t runs = 1;
    for (const Loop& loop : loops) runs *= loop.count;
    return runs;
  }
  uint64_t bytes() const { return count() * run_bytes; }
  // From the first byte to the end of the last run, in the container.
  uint64_t span_bytes() const {
    uint64_t last = run_bytes;
    for (const Loop& loop : loops) last += (loop.count - 1) * loop.there;
    return last;
  }
};

// The runs of the box `dims`, which lies at `there_at` in a dense array of shape `there_dims`, and
// at `here_at` in one of shape `here_dims`. REQUIRES: it is inside of both; no count is 0.
Runs runs_of(uint64_t element_bytes, std::span<const uint64_t> there_dims,
             std::span<const uint64_t> there_at, std::span<const uint64_t> here_dims,
             std::span<const uint64_t> here_at, std::span<const uint64_t> dims);

// Calls visit(there, here) for each run, in order. Stops at the first call that returns neither 0
// nor false, and returns its value.
template <typename Visit>
auto for_each_run(const Runs& runs, const Visit& visit) {
  OC_CHECK(runs.loops.size() <= kDimsMax);
  uint64_t at[kDimsMax] = {};
  uint64_t there = runs.there, here = runs.here;
  for (;;) {
    if (auto stop = visit(there, here); stop) return stop;
    size_t d = runs.loops.size();
    for (;;) {
      if (d == 0) return decltype(visit(there, here))();
      const Loop& loop = runs.loops[--d];
      there += loop.there;
      here += loop.here;
      if (++at[d] < loop.count) break;
      there -= loop.count * loop.there;
      here -= loop.count * loop.here;
      at[d] = 0;
    }
  }
}

// Calls visit(number of the tile, its runs) for each tile that the box touches. Tiles at the edges
// are kept whole, too. They are numbered so that the last dimension varies fastest.
template <typename Visit>
auto for_each_tile(uint64_t element_bytes, const Dims& shape, const Dims& tiles,
                   const Dims& offsets, const Dims& dims, const Visit& visit) {
  const size_t n = shape.size();
  OC_CHECK(n <= kDimsMax && tiles.size() == n && offsets.size() == n && dims.size() == n);
  uint64_t first[kDimsMax], last[kDimsMax], tile[kDimsMax], grid[kDimsMax];
  for (size_t d = 0; d < n; ++d) {
    OC_ASSERT(tiles[d] != 0 && dims[d] != 0 && offsets[d] + dims[d] <= shape[d]);
    first[d] = tile[d] = offsets[d] / tiles[d];
    last[d] = (offsets[d] + dims[d] - 1) / tiles[d];
    grid[d] = (shape[d] + tiles[d] - 1) / tiles[d];
  }
  for (;;) {
    uint64_t number = 0, in_tile[kDimsMax], in_box[kDimsMax], count[kDimsMax];
    for (size_t d = 0; d < n; ++d) {
      number = number * grid[d] + tile[d];
      const uint64_t begin = std::max(offsets[d], tile[d] * tiles[d]);
      const uint64_t end = std::min(offsets[d] + dims[d], (tile[d] + 1) * tiles[d]);
      OC_ASSERT(end > begin);
      in_tile[d] = begin - tile[d] * tiles[d];
      in_box[d] = begin - offsets[d];
      count[d] = end - begin;
    }
    const Runs runs = runs_of(element_bytes, tiles, {in_tile, n}, dims, {in_box, n}, {count, n});
    if (auto stop = visit(number, runs); stop) return stop;
    size_t d = n;
    for (;;) {
      if (d == 0) return decltype(visit(number, runs))();
      --d;
      if (++tile[d] <= last[d]) break;
      tile[d] = first[d];
    }
  }
}

}  // namespace outcore::arrays
