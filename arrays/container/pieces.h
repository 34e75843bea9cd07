// Pieces: divides an array into boxes of bounded size, in the order in which they lie in the
// container.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arrays/container/box.h"
#include "arrays/container/catalog.h"
#include "core/base/assert.h"

namespace outcore::arrays {

// Calls visit(offsets, dims) until it returns true, with dimensions in the array's own order. A box
// has at most bytes_max, but at least one element or, if the array is tiled, one tile; of a tiled
// array it consists of whole tiles. An array without elements has no box. A single value has one
// box without dimensions.
template <typename Visit>
void for_each_piece(const ArrayInfo& info, uint64_t bytes_max, const Visit& visit) {
  const bool is_column = info.order == Order::kColumn;
  const auto turned = [&](Dims dims) {
    if (is_column) std::reverse(dims.begin(), dims.end());
    return dims;
  };
  const Dims shape = turned(info.dims);
  const size_t n = shape.size();
  Dims unit = info.tiles.empty() ? Dims(n, 1) : turned(info.tiles);
  OC_ASSERT(unit.size() == n);
  if (std::count(shape.begin(), shape.end(), uint64_t{0}) != 0) return;
  Dims box = unit;
  uint64_t bytes = info.type.size_bytes;
  for (const uint64_t u : unit) bytes *= u;
  for (size_t d = n; d-- > 0;) {  // from the innermost dimension on, as wide as fits
    const uint64_t units = (shape[d] + unit[d] - 1) / unit[d];
    const uint64_t fit = std::clamp<uint64_t>(bytes_max / std::max<uint64_t>(bytes, 1), 1, units);
    box[d] = std::min(unit[d] * fit, shape[d]);
    OC_ASSERT(box[d] != 0 && box[d] <= shape[d]);
    if (fit < units) break;
    bytes *= units;
  }
  Dims at(n, 0), dims(n);
  for (;;) {
    for (size_t d = 0; d < n; ++d) dims[d] = std::min(box[d], shape[d] - at[d]);
    if (visit(turned(at), turned(dims))) return;
    size_t d = n;
    for (;;) {
      if (d == 0) return;
      --d;
      at[d] += box[d];
      if (at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace outcore::arrays
