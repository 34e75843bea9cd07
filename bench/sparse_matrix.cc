#include "bench/sparse_matrix.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "bench/check.h"
#include "bench/random.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

uint64_t hash_of_entry(uint64_t place, uint32_t column, double value) {
  return mix(mix(place << 32 ^ column) + std::bit_cast<uint64_t>(value));
}

uint64_t hash_of_start(uint64_t row, uint64_t start) { return mix(~row + mix(start)); }

}  // namespace

SparseMatrix::SparseMatrix(const SparseProblem& problem, const Arrays& arrays, unsigned threads)
    : problem_(problem), arrays_(arrays), threads_(threads) {
  BENCH_CHECK(threads != 0);
}

template <typename Work>
void SparseMatrix::on_rows(Work work) const {
  on_threads(threads_, [&](unsigned t) {
    work(problem_.rows * t / threads_, problem_.rows * (t + 1) / threads_);
  });
}

// Rows are made twice: to know where each begins, and to write it.
uint64_t SparseMatrix::make(const SparseVectors& vectors) {
  on_rows([&](uint64_t first, uint64_t end) {
    std::vector<SparseVectors::Entry> entries;
    for (uint64_t row = first; row < end; ++row) {
      vectors.make_row(row, entries);
      arrays_.starts[row + 1] = entries.size();
    }
  });
  arrays_.starts[0] = 0;
  for (uint64_t row = 0; row < problem_.rows; ++row) arrays_.starts[row + 1] += arrays_.starts[row];
  entries_ = arrays_.starts[problem_.rows];
  std::atomic<uint64_t> hash{hash_of_start(problem_.rows, entries_)};
  on_rows([&](uint64_t first, uint64_t end) {
    std::vector<SparseVectors::Entry> entries;
    uint64_t part = 0, at = start_of(first);
    for (uint64_t row = first; row < end; ++row) {
      part += hash_of_start(row, at);
      vectors.make_row(row, entries);
      for (const SparseVectors::Entry& entry : entries) {
        if (at == problem_.entries_max()) break;  // the starts were damaged
        part += hash_of_entry(at, entry.column, entry.value);
        arrays_.columns[at] = entry.column;
        arrays_.values[at++] = entry.value;
      }
    }
    hash += part;
  });
  return hash.load();
}

uint64_t SparseMatrix::start_of(uint64_t row) const {
  return std::min(arrays_.starts[row], problem_.entries_max());
}

uint64_t SparseMatrix::hash() const {
  std::atomic<uint64_t> hash{hash_of_start(problem_.rows, arrays_.starts[problem_.rows])};
  on_rows([&](uint64_t first, uint64_t end) {
    uint64_t part = 0;
    for (uint64_t row = first; row < end; ++row) {
      part += hash_of_start(row, arrays_.starts[row]);
      for (uint64_t at = start_of(row); at < start_of(row + 1); ++at)
        part += hash_of_entry(at, arrays_.columns[at], arrays_.values[at]);
    }
    hash += part;
  });
  return hash.load();
}

void SparseMatrix::multiply(const double* x, double* y) const {
  BENCH_CHECK(x != y);
  const auto last = static_cast<uint32_t>(problem_.rows - 1);
  on_rows([&](uint64_t first, uint64_t end) {
    for (uint64_t row = first; row < end; ++row) {
      double sum = 0;
      const uint64_t row_end = start_of(row + 1);
      for (uint64_t at = start_of(row); at < row_end; ++at)
        sum += arrays_.values[at] * x[std::min(arrays_.columns[at], last)];
      y[row] = sum;
    }
  });
}

}  // namespace outcore::bench
