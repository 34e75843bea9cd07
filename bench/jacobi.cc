// jacobi: Poisson's equation by Jacobi's iteration with 19 points, over the fourteen arrays of the
// Himeno benchmark.
//
// As there, the arrays are of float, the grid is 1 : 1 : 2, a point takes 34 operations, and gosa
// is the residual of the last loop. Other than there, the coefficients differ a little from place
// to place, so that a page in another's place is a wrong answer, and gosa is summed up plane by
// plane: the same for any number of threads. So an answer is compared bit by bit with that of the
// same code in ordinary memory, where coefficients are computed instead of stored: two arrays of
// fourteen.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include "bench/check.h"
#include "bench/fresh_workload.h"
#include "bench/random.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

enum Name : unsigned { kP, kBnd, kWrk1, kWrk2, kA, kB = kA + 4, kC = kB + 3, kArrays = kC + 3 };
constexpr float kOmega = 0.8F;
constexpr double kOperations = 34;  // of a point

struct Grid {
  uint64_t i = 0, j = 0, k = 0;
  uint64_t cells() const { return i * j * k; }
  uint64_t inner() const { return (i - 2) * (j - 2) * (k - 2); }
  uint64_t array_bytes() const {
    return (cells() * sizeof(float) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  }
};

// The largest whose arrays fit.
Grid grid_of(uint64_t size_bytes) {
  const uint64_t cells = size_bytes / kArrays / kUnitBytes * kUnitBytes / sizeof(float);
  Grid grid;
  grid.i = grid.j = static_cast<uint64_t>(std::cbrt(static_cast<double>(cells) / 2));
  grid.k = cells / (grid.i * grid.j);
  return grid;
}

// What the cell of an array begins with: Himeno's value and, of the coefficients, a little more.
float value_of(unsigned array, uint64_t at, const Grid& grid) {
  if (array == kWrk2) return 0;
  if (array == kP) {
    const uint64_t plane = at / (grid.j * grid.k);
    const auto i = static_cast<float>(plane);
    const auto most = static_cast<float>(grid.i - 1);
    return i * i / (most * most);
  }
  const auto more = static_cast<float>(static_cast<int>(mix((uint64_t{array} << 48) + at) >> 54));
  const float base = array == kA + 3                 ? 1.0F / 6
                     : array == kWrk1                ? 0.0F
                     : array >= kB && array < kB + 3 ? 0.0F
                                                     : 1.0F;
  return base + (more - 512) * 0x1p-22F;
}

// One point: its new value, and its part of gosa. read(array, at) gives a coefficient.
template <typename Read>
float relax(const float* p, const Grid& grid, uint64_t at, Read read, double& gosa) {
  const uint64_t k = 1, j = grid.k, i = grid.j * grid.k;
  const float s0 =
      read(kA, at) * p[at + i] + read(kA + 1, at) * p[at + j] + read(kA + 2, at) * p[at + k] +
      read(kB, at) * (p[at + i + j] - p[at + i - j] - p[at - i + j] + p[at - i - j]) +
      read(kB + 1, at) * (p[at + j + k] - p[at - j + k] - p[at + j - k] + p[at - j - k]) +
      read(kB + 2, at) * (p[at + i + k] - p[at - i + k] - p[at + i - k] + p[at - i - k]) +
      read(kC, at) * p[at - i] + read(kC + 1, at) * p[at - j] + read(kC + 2, at) * p[at - k] +
      read(kWrk1, at);
  const float ss = (s0 * read(kA + 3, at) - p[at]) * read(kBnd, at);
  gosa += static_cast<double>(ss) * static_cast<double>(ss);
  return p[at] + kOmega * ss;
}

struct Answer {
  double gosa = 0;
  uint64_t hash = 0;  // of p
  bool operator==(const Answer&) const = default;
};

// Calls row(plane, first cell of a row, its end) for the inner rows.
template <typename Row>
void on_rows(const Grid& grid, unsigned threads, Row row) {
  BENCH_CHECK(threads != 0 && grid.i > 2 && grid.j > 2 && grid.k > 2);
  on_threads(threads, [&](unsigned t) {
    const uint64_t planes = grid.i - 2;
    for (uint64_t i = 1 + planes * t / threads; i < 1 + planes * (t + 1) / threads; ++i)
      for (uint64_t j = 1; j < grid.j - 1; ++j) {
        const uint64_t first = (i * grid.j + j) * grid.k;
        row(i, first + 1, first + grid.k - 1);
      }
  });
}

template <typename Read, typename Progress>
double iterate(float* p, float* wrk2, const Grid& grid, unsigned threads, Read read,
               Progress progress) {
  BENCH_CHECK(p != wrk2);
  std::vector<double> of_plane(grid.i);
  on_rows(grid, threads, [&](uint64_t plane, uint64_t first, uint64_t last) {
    for (uint64_t at = first; at < last; ++at) wrk2[at] = relax(p, grid, at, read, of_plane[plane]);
    progress(last - first);
  });
  on_rows(grid, threads, [&](uint64_t, uint64_t first, uint64_t last) {
    std::copy(wrk2 + first, wrk2 + last, p + first);
  });
  double gosa = 0;
  for (const double part : of_plane) gosa += part;
  return gosa;
}

uint64_t hash_of(const float* p, const Grid& grid, unsigned threads) {
  std::atomic<uint64_t> sum{0};
  on_threads(threads, [&](unsigned t) {
    uint64_t part = 0;
    for (uint64_t at = grid.cells() * t / threads; at < grid.cells() * (t + 1) / threads; ++at)
      part += mix(at * 0x1'0000'0001 + std::bit_cast<uint32_t>(p[at]));
    sum += part;
  });
  return sum.load();
}

class Jacobi : public FreshWorkload {
 public:
  explicit Jacobi(const Options& options)
      : FreshWorkload(options, "jacobi"),
        grid_(grid_of(options.size_bytes)),
        loops_(options.loops == 0 ? kJacobiPasses : options.loops) {}

  Status run(Stage& stage) override;
  Status check(const RunResult& result) override;

 private:
  Answer compute_in_memory() const;

  Grid grid_;
  unsigned loops_;
  std::optional<Answer> expected_;
};

Answer Jacobi::compute_in_memory() const {
  std::vector<float> p(grid_.cells()), wrk2(grid_.cells());
  for (uint64_t at = 0; at < p.size(); ++at) p[at] = value_of(kP, at, grid_);
  const auto read = [this](unsigned array, uint64_t at) { return value_of(array, at, grid_); };
  Answer answer;
  for (unsigned loop = 0; loop < loops_; ++loop)
    answer.gosa = iterate(p.data(), wrk2.data(), grid_, options_.threads, read, [](uint64_t) {});
  answer.hash = hash_of(p.data(), grid_, options_.threads);
  return answer;
}

Status Jacobi::run(Stage& stage) {
  if (Status s = stage.settle(); !s) return s;
  const auto mapped = map_all(stage);
  if (!mapped) return mapped.error();
  BENCH_CHECK(mapped->size() >= kArrays * grid_.array_bytes());
  const auto array = [&](unsigned name) {
    return reinterpret_cast<float*>(mapped->data() + name * grid_.array_bytes());
  };
  on_threads(options_.threads, [&](unsigned t) {
    const uint64_t first = grid_.cells() * t / options_.threads,
                   last = grid_.cells() * (t + 1) / options_.threads;
    for (unsigned name = 0; name < kArrays; ++name)
      for (uint64_t at = first; at < last; ++at) array(name)[at] = value_of(name, at, grid_);
  });
  const float* const all = array(0);
  const uint64_t step = grid_.array_bytes() / sizeof(float);
  const auto read = [all, step](unsigned name, uint64_t at) { return all[name * step + at]; };
  Answer answer;
  if (Status s = stage.start(loops_ * grid_.inner()); !s) return s;
  for (unsigned loop = 0; loop < loops_; ++loop)
    answer.gosa = iterate(array(kP), array(kWrk2), grid_, options_.threads, read,
                          [&](uint64_t points) { stage.progress(points); });
  stage.stop();
  answer.hash = hash_of(array(kP), grid_, options_.threads);
  const double operations = kOperations * static_cast<double>(grid_.inner()) * loops_;
  RunResult& result = stage.result();
  result.extra["gosa"] = answer.gosa;
  result.extra["p_hash"] = answer.hash;
  result.extra["mflops"] = operations / result.seconds * 1e-6;
  result.extra["grid"] = cli::format("%llux%llux%llu", static_cast<unsigned long long>(grid_.i),
                                     static_cast<unsigned long long>(grid_.j),
                                     static_cast<unsigned long long>(grid_.k));
  return stage.finish(operations, "flop/s");
}

Status Jacobi::check(const RunResult& result) {
  if (result.is_stopped) return {};
  if (!expected_) expected_ = compute_in_memory();
  const Answer found{result.extra.value("gosa", 0.0), result.extra.value("p_hash", uint64_t{0})};
  if (found == *expected_) return {};
  return Error{EILSEQ, cli::format("gosa is %.9g and must be %.9g, or p is not what it must be",
                                   found.gosa, expected_->gosa)};
}

}  // namespace

std::unique_ptr<Workload> make_jacobi(const Options& options) {
  return std::make_unique<Jacobi>(options);
}

}  // namespace outcore::bench
