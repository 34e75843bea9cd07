// GradientPasses: the work of the conjugate gradients of the NAS Parallel Benchmarks, on arrays
// that lie wherever a program has them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bench/conjugate_gradients.h"
#include "bench/sparse_matrix.h"
#include "outcore/result.h"

namespace outcore::bench {

// What a run has found.
struct GradientsFound {
  double zeta = 0, residual = 1;
  uint64_t wrong = 1;  // elements of the vector
  bool is_intact = false;
};

// What must be found. Any thread.
struct GradientsAnswer {
  std::vector<double> x;
  double zeta = 0;
  double published = 0;  // zeta, as NPB has it; 0: it has none for so many passes

  // By the same iteration without the matrix, in ordinary memory, by the vectors that the matrix is
  // a sum of.
  static GradientsAnswer compute(const SparseProblem& problem, const SparseVectors& sparse,
                                 unsigned passes, unsigned threads);
  // Errors: EILSEQ
  Status check(const GradientsFound& found) const;
};

// One thread calls; it starts the others.
class GradientPasses {
 public:
  struct Arrays {
    SparseMatrix::Arrays matrix;
    ConjugateGradients::Vectors vectors;
  };

  // REQUIRES: threads != 0
  GradientPasses(const SparseProblem& problem, unsigned passes, unsigned threads);

  // Writes all arrays, which it uses from then on.
  void make(const Arrays& arrays, const SparseVectors& sparse);
  // What is timed. `see` is told how many rows have been multiplied. REQUIRES: make()
  void run(const std::function<void(uint64_t)>& see);
  // REQUIRES: run()
  GradientsFound finish(const GradientsAnswer& answer) const;

  uint64_t entries() const { return matrix_->entries(); }
  // Rows that are multiplied in all passes.
  uint64_t rows_in_all() const { return products() * problem_.rows; }
  // Of floating point, in all passes. REQUIRES: make()
  double operations() const;

 private:
  uint64_t products() const { return uint64_t{passes_} * ConjugateGradients::kProducts; }
  uint64_t count_wrong(const std::vector<double>& right) const;

  SparseProblem problem_;
  unsigned passes_, threads_;
  ConjugateGradients gradients_;
  ConjugateGradients::Vectors vectors_{};
  std::optional<SparseMatrix> matrix_;
  uint64_t made_hash_ = 0;
  ConjugateGradients::Pass last_{};
};

}  // namespace outcore::bench
