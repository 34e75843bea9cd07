#include "bench/conjugate_gradients.h"

#include <algorithm>
#include <cmath>

#include "bench/check.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kBlockRows = 512;  // a page of numbers

}  // namespace

ConjugateGradients::ConjugateGradients(uint64_t rows, unsigned threads)
    : rows_(rows), threads_(threads), sums_((rows + kBlockRows - 1) / kBlockRows) {
  BENCH_CHECK(rows != 0 && threads != 0);
}

template <typename See>
double ConjugateGradients::sum_of(See see) {
  on_threads(threads_, [&](unsigned t) {
    const uint64_t blocks = sums_.size();
    for (uint64_t block = blocks * t / threads_; block < blocks * (t + 1) / threads_; ++block) {
      double sum = 0;
      const uint64_t end = std::min(rows_, (block + 1) * kBlockRows);
      for (uint64_t i = block * kBlockRows; i < end; ++i) sum += see(i);
      sums_[block] = sum;
    }
  });
  double sum = 0;
  for (const double part : sums_) sum += part;
  return sum;
}

void ConjugateGradients::begin(const Vectors& v) {
  sum_of([&](uint64_t i) {
    v.z[i] = v.p[i] = v.q[i] = v.r[i] = 0;
    return v.x[i] = 1;
  });
}

void ConjugateGradients::solve(const Vectors& v, const Multiply& multiply) {
  double rho = sum_of([&](uint64_t i) {
    v.z[i] = 0;
    v.r[i] = v.p[i] = v.x[i];
    return v.x[i] * v.x[i];
  });
  for (unsigned step = 0; step < kSteps; ++step) {
    multiply(v.p, v.q);
    const double alpha = rho / sum_of([&](uint64_t i) { return v.p[i] * v.q[i]; });
    const double rho_before = rho;
    rho = sum_of([&](uint64_t i) {
      v.z[i] += alpha * v.p[i];
      v.r[i] -= alpha * v.q[i];
      return v.r[i] * v.r[i];
    });
    const double beta = rho / rho_before;
    sum_of([&](uint64_t i) { return v.p[i] = v.r[i] + beta * v.p[i]; });
  }
}

ConjugateGradients::Pass ConjugateGradients::run_pass(const Vectors& v, double shift,
                                                      const Multiply& multiply) {
  solve(v, multiply);
  multiply(v.z, v.r);
  const double squares = sum_of([&](uint64_t i) {
    const double difference = v.x[i] - v.r[i];
    return difference * difference;
  });
  const double product = sum_of([&](uint64_t i) { return v.x[i] * v.z[i]; });
  const double length = std::sqrt(sum_of([&](uint64_t i) { return v.z[i] * v.z[i]; }));
  sum_of([&](uint64_t i) { return v.x[i] = v.z[i] / length; });
  return {shift + 1 / product, std::sqrt(squares)};
}

}  // namespace outcore::bench
