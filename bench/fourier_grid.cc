#include "bench/fourier_grid.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "bench/array_layout.h"
#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr double kAlpha = 1e-6;  // how fast waves fade
constexpr unsigned kPassesOfASize = 6;

}  // namespace

FourierGrid FourierGrid::fitting(uint64_t size_bytes) {
  BENCH_CHECK(size_bytes >= kBytesMin && size_bytes <= kBytesMax);
  const uint64_t points = size_bytes / (2 * sizeof(Complex) + sizeof(double));
  const unsigned bits = static_cast<unsigned>(std::bit_width(points)) - 1;
  const unsigned x = (bits + 2) / 3, y = (bits - x + 1) / 2;
  const FourierGrid grid{{uint64_t{1} << x, uint64_t{1} << y, uint64_t{1} << (bits - x - y)},
                         kPassesOfASize};
  BENCH_CHECK(grid.sides[2] >= kSideMin && grid.size_bytes() <= size_bytes);
  return grid;
}

uint64_t FourierGrid::size_bytes() const {
  ArrayLayout layout;
  layout.add<Complex>(points());
  layout.add<Complex>(points());
  layout.add<double>(points());
  return layout.size_bytes();
}

double FourierGrid::factor(uint64_t k, uint64_t side, unsigned passes) {
  BENCH_CHECK(k < side);
  const double number = static_cast<double>(k < side / 2 ? k : side - k);
  return std::exp(-4 * kAlpha * std::numbers::pi * std::numbers::pi * number * number * passes);
}

}  // namespace outcore::bench
