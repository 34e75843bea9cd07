// SparseMatrix: a matrix by rows, in arrays that lie wherever the memory of a run is.
#pragma once

#include <cstdint>

#include "bench/sparse_vectors.h"

namespace outcore::bench {

// One thread calls; it starts the others. Whatever the arrays hold, no call goes beyond them:
// damaged data is a wrong answer, and no crash.
class SparseMatrix {
 public:
  struct Arrays {
    double* values;     // room for entries_max()
    uint32_t* columns;  // as much
    uint64_t* starts;   // of the rows, and the end
  };
  // REQUIRES: threads != 0
  SparseMatrix(const SparseProblem& problem, const Arrays& arrays, unsigned threads);

  // Writes all of it. Returns the hash that it must have.
  uint64_t make(const SparseVectors& vectors);
  // Of what the arrays hold now: the same for any number of threads.
  uint64_t hash() const;
  // y = A x. REQUIRES: x != y
  void multiply(const double* x, double* y) const;
  uint64_t entries() const { return entries_; }

 private:
  // Calls work(first row, end) for each thread's part.
  template <typename Work>
  void on_rows(Work work) const;
  uint64_t start_of(uint64_t row) const;

  SparseProblem problem_;
  Arrays arrays_;
  unsigned threads_;
  uint64_t entries_ = 0;
};

}  // namespace outcore::bench
