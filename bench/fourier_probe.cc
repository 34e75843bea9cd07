#include "bench/fourier_probe.h"

#include <cmath>
#include <numbers>

#include "bench/check.h"
#include "bench/random.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

constexpr double kTolerance = 1e-11;
constexpr uint64_t kProbeSeed = 1979;

// What a unit at 0 has become along a side, after all passes: the sum of its faded waves.
std::vector<double> kernel_of(uint64_t side, unsigned passes) {
  std::vector<double> factors(side), cosines(side), kernel(side);
  const auto n = static_cast<double>(side);
  for (uint64_t k = 0; k < side; ++k) {
    factors[k] = FourierGrid::factor(k, side, passes) / n;
    cosines[k] = std::cos(2 * std::numbers::pi * static_cast<double>(k) / n);
  }
  for (uint64_t x = 0; x < side; ++x)
    for (uint64_t k = 0; k < side; ++k) kernel[x] += factors[k] * cosines[k * x % side];
  return kernel;
}

}  // namespace

FourierProbe::FourierProbe(const FourierGrid& grid, unsigned passes) : grid_(grid) {
  Random random(kProbeSeed);
  for (unsigned s = 0; s < 3; ++s) {
    const uint64_t side = grid.sides[s];
    // Far from 0: each point weighs.
    for (uint64_t i = 0; i < side; ++i)
      random_[s].push_back((random.unit() + 0.5) * (random.below(2) == 0 ? 1 : -1));
    const std::vector<double> kernel = kernel_of(side, passes);
    mapped_[s].resize(side);
    for (uint64_t to = 0; to < side; ++to)
      for (uint64_t i = 0; i < side; ++i)
        mapped_[s][to] += kernel[(to + side - i) % side] * random_[s][i];
  }
}

template <typename Plane>
Complex FourierProbe::sum_of(Plane plane, unsigned threads) const {
  BENCH_CHECK(threads != 0);
  const uint64_t planes = grid_.sides[2];
  std::vector<Complex> sums(planes);
  on_threads(threads, [&](unsigned t) {
    for (uint64_t z = planes * t / threads; z < planes * (t + 1) / threads; ++z) sums[z] = plane(z);
  });
  Complex sum{};
  for (const Complex& part : sums) sum = sum + part;
  return sum;
}

Complex FourierProbe::found(const Complex* u, unsigned threads) const {
  const uint64_t row = grid_.sides[0];
  const auto plane = [&](uint64_t z) {
    Complex of_plane{};
    for (uint64_t y = 0; y < grid_.sides[1]; ++y) {
      Complex of_row{};
      const Complex* const at = u + z * grid_.plane() + y * row;
      for (uint64_t x = 0; x < row; ++x) of_row = of_row + at[x] * random_[0][x];
      of_plane = of_plane + of_row * random_[1][y];
    }
    return of_plane * random_[2][z];
  };
  return sum_of(plane, threads) * (1 / static_cast<double>(grid_.points()));
}

Complex FourierProbe::expected(unsigned threads) const {
  const uint64_t row = grid_.sides[0];
  const auto plane = [&](uint64_t z) {
    Complex of_plane{}, of_row{};
    grid_.make_plane(z, [&](uint64_t i, Complex value) {
      of_row = of_row + value * mapped_[0][i % row];
      if (i % row != row - 1) return;
      of_plane = of_plane + of_row * mapped_[1][i / row];
      of_row = {};
    });
    return of_plane * mapped_[2][z];
  };
  return sum_of(plane, threads);
}

double FourierProbe::tolerance() const {
  return kTolerance * std::sqrt(static_cast<double>(grid_.points()));
}

}  // namespace outcore::bench
