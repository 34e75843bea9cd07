#include "bench/sparse_problem.h"

#include "bench/array_layout.h"
#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr unsigned kVectors = 5;

// With these the largest eigenvalue is about 23, whatever the number of rows, and the shift is well
// above it. Fewer passes: the answer does not change much after them.
constexpr SparseProblem kLikeClassB{0, 13, 60, 4, 0};

}  // namespace

SparseProblem SparseProblem::fitting(uint64_t size_bytes) {
  BENCH_CHECK(size_bytes >= kBytesMin && size_bytes <= kBytesMax);
  SparseProblem fitting = kLikeClassB;
  fitting.rows = 1;
  const uint64_t row_bytes = fitting.entries_max() * (sizeof(double) + sizeof(uint32_t)) +
                             kVectors * sizeof(double) + sizeof(uint64_t);
  fitting.rows = size_bytes / row_bytes;
  while (fitting.size_bytes() > size_bytes) --fitting.rows;
  return fitting;
}

uint64_t SparseProblem::size_bytes() const {
  ArrayLayout layout;
  layout.add<double>(entries_max());
  layout.add<uint32_t>(entries_max());
  layout.add<uint64_t>(rows + 1);
  for (unsigned i = 0; i < kVectors; ++i) layout.add<double>(rows);
  return layout.size_bytes();
}

}  // namespace outcore::bench
