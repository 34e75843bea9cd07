#include "bench/fourier_passes.h"

#include <bit>
#include <cerrno>
#include <cmath>

#include "bench/check.h"
#include "bench/published_checksums.h"
#include "bench/random.h"
#include "bench/threads.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kChecksumPoints = 1024;
constexpr double kChecksumTolerance = 1e-12;  // NPB's, relative

bool is_near_part(double found, double right) {
  return std::abs(found - right) <= kChecksumTolerance * std::abs(right);
}

}  // namespace

Status FourierFound::check(const FourierProbe& expecting, Complex expected) const {
  const Complex away = probe - expected;
  const bool is_right = std::hypot(away.re, away.im) <= expecting.tolerance();
  if (is_right && wrong == 0) return {};
  return Error{EILSEQ,
               cli::format("the last state is %swhat the first must become, and %llu checksums are "
                           "not the published ones",
                           is_right ? "" : "not ", static_cast<unsigned long long>(wrong))};
}

FourierPasses::FourierPasses(const FourierGrid& grid, unsigned passes, unsigned threads)
    : grid_(grid), passes_(passes), threads_(threads), transform_(grid, threads) {
  checksums_.reserve(passes);
}

template <typename Work>
void FourierPasses::on_planes(Work work) const {
  on_threads(threads_, [&](unsigned t) {
    const uint64_t planes = grid_.sides[2];
    for (uint64_t z = planes * t / threads_; z < planes * (t + 1) / threads_; ++z) work(z);
  });
}

void FourierPasses::make(const FourierArrays& arrays) const {
  std::vector<double> factors[3];
  for (unsigned side = 0; side < 3; ++side)
    for (uint64_t k = 0; k < grid_.sides[side]; ++k)
      factors[side].push_back(FourierGrid::factor(k, grid_.sides[side]));
  const uint64_t row = grid_.sides[0];
  on_planes([&](uint64_t z) {
    const uint64_t first = z * grid_.plane();
    grid_.make_plane(z, [&](uint64_t i, Complex value) {
      arrays.waves[first + i] = value;
      arrays.factors[first + i] = factors[0][i % row] * factors[1][i / row] * factors[2][z];
    });
  });
}

// The waves fade, and are copied to where they are transformed back.
void FourierPasses::evolve(const FourierArrays& arrays) const {
  on_planes([&](uint64_t z) {
    for (uint64_t i = z * grid_.plane(); i < (z + 1) * grid_.plane(); ++i)
      arrays.state[i] = arrays.waves[i] = arrays.waves[i] * arrays.factors[i];
  });
}

Complex FourierPasses::checksum_of(const Complex* state) const {
  Complex sum{};
  for (uint64_t j = 1; j <= kChecksumPoints; ++j) sum = sum + state[grid_.checksum_point(j)];
  return sum * (1 / static_cast<double>(grid_.points()));
}

void FourierPasses::run(const FourierArrays& arrays, const std::function<void(uint64_t)>& see) {
  transform_.forward(arrays.waves, see);
  for (unsigned pass = 0; pass < passes_; ++pass) {
    evolve(arrays);
    transform_.inverse(arrays.state, see);
    checksums_.push_back(checksum_of(arrays.state));
  }
}

FourierFound FourierPasses::finish(const FourierArrays& arrays, const FourierProbe& probe,
                                   std::string_view nas_class) const {
  BENCH_CHECK(!checksums_.empty());
  FourierFound found{probe.found(arrays.state, threads_), checksums_.back(), 0, 0};
  const auto published = published_checksums(nas_class);
  for (size_t pass = 0; pass < checksums_.size(); ++pass) {
    const Complex& sum = checksums_[pass];
    found.checksums_hash = mix(mix(found.checksums_hash ^ std::bit_cast<uint64_t>(sum.re)) ^
                               std::bit_cast<uint64_t>(sum.im));
    if (pass < published.size())
      found.wrong +=
          !(is_near_part(sum.re, published[pass].re) && is_near_part(sum.im, published[pass].im));
  }
  return found;
}

// The usual count: five for a point in each halving; and four for a point that fades.
double FourierPasses::operations() const {
  const auto points = static_cast<double>(grid_.points());
  return points * (5 * std::log2(points) * (passes_ + 1) + 4.0 * static_cast<double>(passes_));
}

}  // namespace outcore::bench
