#include "bench/poisson_grid.h"

#include <cmath>

namespace outcore::bench {

PoissonGrid PoissonGrid::fitting(uint64_t size_bytes) {
  BENCH_CHECK(size_bytes >= kArrays * kUnitBytes);
  const uint64_t cells = size_bytes / kArrays / kUnitBytes * kUnitBytes / sizeof(float);
  PoissonGrid grid;
  grid.i = grid.j = static_cast<uint64_t>(std::cbrt(static_cast<double>(cells) / 2));
  grid.k = cells / (grid.i * grid.j);
  return grid;
}

}  // namespace outcore::bench
