// ConjugateGradients: solves A z = x in 25 steps, and with it finds an eigenvalue of A, as the NAS
// Parallel Benchmarks do (NAS-95-020, section 2.3.2).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace outcore::bench {

// One thread calls; it starts the others. Sums are of blocks of fixed size, added up in order: bit
// by bit the same for any number of threads.
class ConjugateGradients {
 public:
  static constexpr unsigned kSteps = 25;
  static constexpr unsigned kProducts = kSteps + 1;  // by the matrix, in a pass
  struct Vectors {
    double *x, *z, *p, *q, *r;  // of `rows` numbers each
  };
  using Multiply = std::function<void(const double* from, double* to)>;  // by the matrix
  struct Pass {
    double zeta;      // the shift + 1 / (x z)
    double residual;  // |x - A z|
  };

  // REQUIRES: rows and threads are not 0
  ConjugateGradients(uint64_t rows, unsigned threads);

  // What the first pass begins with.
  void begin(const Vectors& v);
  // Solves A z = x, and makes x of z, of length 1.
  Pass run_pass(const Vectors& v, double shift, const Multiply& multiply);

 private:
  // Calls see(i) for all; the sum of what it returns.
  template <typename See>
  double sum_of(See see);
  void solve(const Vectors& v, const Multiply& multiply);

  uint64_t rows_;
  unsigned threads_;
  std::vector<double> sums_;  // of blocks
};

}  // namespace outcore::bench
