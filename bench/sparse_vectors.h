// SparseVectors: what the matrix of NPB's conjugate gradients is a sum of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/nas_random.h"
#include "bench/sparse_problem.h"

namespace outcore::bench {

// A = sum of weight_k v_k v_k^T, + (0.1 - shift) I, over as many random vectors v_k as A has rows
// (NAS-95-020, section 2.3.2, makea). The weights fall from 1 to 0.1, so that the condition of the
// sum is known. The vectors take a seventh to a twelfth of the matrix' bytes. Made by one thread;
// then any thread.
class SparseVectors {
 public:
  struct Entry {
    uint32_t column;
    double value;
  };

  explicit SparseVectors(const SparseProblem& problem);

  // A row of A into `entries`, by columns, of which each is there once. REQUIRES: row < rows
  void make_row(uint64_t row, std::vector<Entry>& entries) const;
  // y = A x, without A: what a product by the matrix is compared with. `work` has room for as many
  // numbers as x has. REQUIRES: threads != 0, and no two are the same
  void multiply(const double* x, double* y, std::span<double> work, unsigned threads) const;

 private:
  uint64_t rows() const { return problem_.rows; }
  void make_vector(uint64_t k, uint32_t power, NasRandom& random);
  void sort_by_rows();

  SparseProblem problem_;
  uint64_t stride_;  // room for the entries of a vector
  // Entry e belongs to vector e / stride_; one whose value is 0 is none.
  std::vector<double> values_;
  std::vector<uint32_t> columns_;
  std::vector<double> weights_;
  std::vector<uint64_t> row_starts_;
  std::vector<uint32_t> row_entries_;  // entries by their column, which is a row of A
};

}  // namespace outcore::bench
