// PoissonLoop: Poisson's equation by Jacobi's iteration with 19 points, as the Himeno benchmark has
// it, on arrays that lie wherever a program has them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bench/check.h"
#include "bench/poisson_grid.h"
#include "bench/threads.h"
#include "outcore/result.h"

namespace outcore::bench {

// What a run has found, and must find, bit by bit.
struct PoissonFound {
  double gosa = 0;
  uint64_t hash = 0;  // of p

  bool operator==(const PoissonFound&) const = default;
  // Errors: EILSEQ: it is not what it must be.
  Status check(const PoissonFound& expected) const;
};

// As in Himeno the arrays are of float, a point takes 34 operations, and gosa is the residual of
// the last loop. Other than there, the coefficients differ a little from place to place, so that a
// page in another's place is a wrong answer, and gosa is summed up plane by plane: the same for any
// number of threads. So an answer is compared bit by bit with that of the same code in ordinary
// memory, where coefficients are computed instead of stored: two arrays of fourteen. Whoever
// includes this is compiled with -ffp-contract=off, or they could be rounded differently.
//
// One thread calls; it starts the others. Templates, so that a coefficient is a read where the
// compiler knows its array.
class PoissonLoop {
 public:
  // REQUIRES: threads != 0; the grid has inner points
  PoissonLoop(const PoissonGrid& grid, unsigned loops, unsigned threads)
      : grid_(grid), loops_(loops), threads_(threads) {
    BENCH_CHECK(threads != 0 && grid.i > 2 && grid.j > 2 && grid.k > 2);
  }

  // Writes all arrays; array(name) is where one is.
  template <typename Array>
  void make(Array array) const;
  // What is timed. read(name, cell) gives a coefficient; `see` is told by the threads how many
  // points have been computed.
  template <typename Read, typename See>
  void run(float* p, float* wrk2, Read read, See see);
  // REQUIRES: run()
  PoissonFound finish(const float* p) const;
  // What finish() must give.
  static PoissonFound compute(const PoissonGrid& grid, unsigned loops, unsigned threads);

  // What `see` is told in all.
  uint64_t points_in_all() const { return loops_ * grid_.inner(); }
  // Of floating point, in all loops.
  double operations() const { return kOperations * static_cast<double>(grid_.inner()) * loops_; }

 private:
  static constexpr float kOmega = 0.8F;
  static constexpr double kOperations = 34;  // of a point

  // Calls row(plane, first cell of a row, its end) for the inner rows.
  template <typename Row>
  void on_rows(Row row) const;
  // One point: its new value, and its part of gosa.
  template <typename Read>
  float relax(const float* p, uint64_t at, Read read, double& gosa) const;
  // Returns gosa.
  template <typename Read, typename See>
  double iterate(float* p, float* wrk2, Read read, See see) const;

  PoissonGrid grid_;
  unsigned loops_, threads_;
  double gosa_ = 0;
};

template <typename Array>
void PoissonLoop::make(Array array) const {
  on_threads(threads_, [&](unsigned t) {
    const uint64_t first = grid_.cells() * t / threads_, last = grid_.cells() * (t + 1) / threads_;
    for (unsigned name = 0; name < PoissonGrid::kArrays; ++name)
      for (uint64_t at = first; at < last; ++at) array(name)[at] = grid_.first_value(name, at);
  });
}

template <typename Read, typename See>
void PoissonLoop::run(float* p, float* wrk2, Read read, See see) {
  for (unsigned loop = 0; loop < loops_; ++loop) gosa_ = iterate(p, wrk2, read, see);
}

template <typename Row>
void PoissonLoop::on_rows(Row row) const {
  on_threads(threads_, [&](unsigned t) {
    const uint64_t planes = grid_.i - 2;
    for (uint64_t i = 1 + planes * t / threads_; i < 1 + planes * (t + 1) / threads_; ++i)
      for (uint64_t j = 1; j < grid_.j - 1; ++j) {
        const uint64_t first = (i * grid_.j + j) * grid_.k;
        row(i, first + 1, first + grid_.k - 1);
      }
  });
}

template <typename Read>
float PoissonLoop::relax(const float* p, uint64_t at, Read read, double& gosa) const {
  using enum PoissonGrid::Array;
  const uint64_t k = 1, j = grid_.k, i = grid_.j * grid_.k;
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

template <typename Read, typename See>
double PoissonLoop::iterate(float* p, float* wrk2, Read read, See see) const {
  BENCH_CHECK(p != wrk2);
  std::vector<double> of_plane(grid_.i);
  on_rows([&](uint64_t plane, uint64_t first, uint64_t last) {
    for (uint64_t at = first; at < last; ++at) wrk2[at] = relax(p, at, read, of_plane[plane]);
    see(last - first);
  });
  on_rows([&](uint64_t, uint64_t first, uint64_t last) {
    std::copy(wrk2 + first, wrk2 + last, p + first);
  });
  double gosa = 0;
  for (const double part : of_plane) gosa += part;
  return gosa;
}

}  // namespace outcore::bench
