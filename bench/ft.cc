// ft: the 3-D Fourier transform of the NAS Parallel Benchmarks: a diffusion equation, solved by a
// transform forward, waves that fade in each pass, and a transform back.
//
// As there, it has two arrays of complex numbers, and one of factors; only the making of what it
// begins with is beyond the time. Of the classes the checksum of each pass must be the published
// one. Whatever the size, the last state must be what the first becomes, by a probe that needs no
// transform (fourier_probe.h).
#include <bit>
#include <cerrno>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "bench/array_layout.h"
#include "bench/check.h"
#include "bench/fourier_probe.h"
#include "bench/fourier_transform.h"
#include "bench/fresh_workload.h"
#include "bench/published_checksums.h"
#include "bench/random.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kChecksumPoints = 1024;
constexpr double kChecksumTolerance = 1e-12;  // NPB's, relative

FourierGrid grid_for(const Options& options) {
  const auto of_class = FourierGrid::of_class(options.nas_class);
  return of_class ? *of_class : FourierGrid::fitting(options.size_bytes);
}

bool is_near_part(double found, double right) {
  return std::abs(found - right) <= kChecksumTolerance * std::abs(right);
}

// Not of --size, but of the grid, which may take no more than half of it.
Options with_grid_size(const Options& options) {
  Options fitting = options;
  fitting.size_bytes = grid_for(options).size_bytes();
  return fitting;
}

class FourierWork : public FreshWorkload {
 public:
  explicit FourierWork(const Options& options)
      : FreshWorkload(with_grid_size(options), "waves"),
        grid_(grid_for(options)),
        passes_(options.loops == 0 ? grid_.passes : options.loops),
        probe_(grid_, passes_) {}

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  struct Arrays {
    Complex *waves, *state;
    double* factors;
  };
  Result<Arrays> map(Stage& stage) const;
  // Calls work(z) for all planes, on all threads.
  template <typename Work>
  void on_planes(Work work) const;
  void make(const Arrays& arrays) const;
  void evolve(const Arrays& arrays) const;
  Complex checksum_of(const Complex* state) const;
  void tell(RunResult& result, const std::vector<Complex>& checksums) const;

  FourierGrid grid_;
  unsigned passes_;
  FourierProbe probe_;
  std::optional<Complex> expected_;
};

Result<FourierWork::Arrays> FourierWork::map(Stage& stage) const {
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  ArrayLayout layout;
  Arrays arrays{};
  std::byte* const base = mapped->data();
  arrays.waves = reinterpret_cast<Complex*>(base + layout.add<Complex>(grid_.points()));
  arrays.state = reinterpret_cast<Complex*>(base + layout.add<Complex>(grid_.points()));
  arrays.factors = reinterpret_cast<double*>(base + layout.add<double>(grid_.points()));
  BENCH_CHECK(layout.size_bytes() <= mapped->size());
  return arrays;
}

template <typename Work>
void FourierWork::on_planes(Work work) const {
  on_threads(options_.threads, [&](unsigned t) {
    const uint64_t planes = grid_.sides[2];
    for (uint64_t z = planes * t / options_.threads; z < planes * (t + 1) / options_.threads; ++z)
      work(z);
  });
}

void FourierWork::make(const Arrays& arrays) const {
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
void FourierWork::evolve(const Arrays& arrays) const {
  on_planes([&](uint64_t z) {
    for (uint64_t i = z * grid_.plane(); i < (z + 1) * grid_.plane(); ++i)
      arrays.state[i] = arrays.waves[i] = arrays.waves[i] * arrays.factors[i];
  });
}

Complex FourierWork::checksum_of(const Complex* state) const {
  Complex sum;
  for (uint64_t j = 1; j <= kChecksumPoints; ++j) sum = sum + state[grid_.checksum_point(j)];
  return sum * (1 / static_cast<double>(grid_.points()));
}

void FourierWork::tell(RunResult& result, const std::vector<Complex>& checksums) const {
  const auto published = published_checksums(options_.nas_class);
  uint64_t wrong = 0, hash = 0;
  for (size_t pass = 0; pass < checksums.size(); ++pass) {
    const Complex& sum = checksums[pass];
    hash = mix(mix(hash ^ std::bit_cast<uint64_t>(sum.re)) ^ std::bit_cast<uint64_t>(sum.im));
    if (pass < published.size())
      wrong +=
          !(is_near_part(sum.re, published[pass].re) && is_near_part(sum.im, published[pass].im));
  }
  result.extra["checksum_re"] = checksums.back().re;
  result.extra["checksum_im"] = checksums.back().im;
  result.extra["checksums_hash"] = hash;
  result.extra["wrong"] = wrong;
}

Status FourierWork::run(Stage& stage) {
  FourierTransform transform(grid_, options_.threads);
  if (Status s = stage.settle(); !s) return s;
  const Result<Arrays> mapped = map(stage);
  if (!mapped) return mapped.error();
  const Arrays arrays = mapped.value();
  make(arrays);
  std::vector<Complex> checksums;
  const auto see = [&](uint64_t points) { stage.progress(points); };
  if (Status s = stage.start((passes_ + 1) * 3 * grid_.points()); !s) return s;
  transform.forward(arrays.waves, see);
  for (unsigned pass = 0; pass < passes_; ++pass) {
    evolve(arrays);
    transform.inverse(arrays.state, see);
    checksums.push_back(checksum_of(arrays.state));
  }
  stage.stop();
  const Complex found = probe_.found(arrays.state, options_.threads);
  RunResult& result = stage.result();
  tell(result, checksums);
  result.extra["probe_re"] = found.re;
  result.extra["probe_im"] = found.im;
  result.extra["grid"] =
      cli::format("%llux%llux%llu", static_cast<unsigned long long>(grid_.sides[0]),
                  static_cast<unsigned long long>(grid_.sides[1]),
                  static_cast<unsigned long long>(grid_.sides[2]));
  // The usual count: five for a point in each halving; and four for a point that fades.
  const auto points = static_cast<double>(grid_.points());
  const double operations =
      points * (5 * std::log2(points) * (passes_ + 1) + 4.0 * static_cast<double>(passes_));
  return stage.finish(operations, "flop/s");
}

Status FourierWork::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (!expected_) expected_ = probe_.expected(making_threads());
  const Complex found{result.extra.value("probe_re", 0.0), result.extra.value("probe_im", 0.0)};
  const Complex away = found - *expected_;
  const bool is_right = std::hypot(away.re, away.im) <= probe_.tolerance();
  const uint64_t wrong = result.extra.value("wrong", uint64_t{1});
  if (is_right && wrong == 0) return {};
  return Error{EILSEQ,
               cli::format("the last state is %swhat the first must become, and %llu checksums are "
                           "not the published ones",
                           is_right ? "" : "not ", static_cast<unsigned long long>(wrong))};
}

}  // namespace

std::unique_ptr<Workload> make_fourier(const Options& options) {
  return std::make_unique<FourierWork>(options);
}

}  // namespace outcore::bench
