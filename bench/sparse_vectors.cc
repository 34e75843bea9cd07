#include "bench/sparse_vectors.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "bench/check.h"
#include "bench/threads.h"

namespace outcore::bench {
namespace {

constexpr double kSmallest = 0.1;    // NPB's rcond
constexpr double kOnDiagonal = 0.5;  // what vector k has at k

}  // namespace

SparseVectors::SparseVectors(const SparseProblem& problem)
    : problem_(problem),
      stride_(problem.nonzeros + 1),
      values_(problem.rows * stride_),
      columns_(problem.rows * stride_),
      weights_(problem.rows) {
  BENCH_CHECK(problem.rows > 2 * stride_ && values_.size() < uint64_t{1} << 32);
  const auto power = static_cast<uint32_t>(std::bit_ceil(problem.rows));
  NasRandom random;
  random.next();  // which NPB draws before it makes the matrix
  const double ratio = std::pow(kSmallest, 1 / static_cast<double>(problem.rows));
  double weight = 1;
  for (uint64_t k = 0; k < rows(); ++k, weight *= ratio) {
    make_vector(k, power, random);
    weights_[k] = weight;
  }
  sort_by_rows();
}

void SparseVectors::make_vector(uint64_t k, uint32_t power, NasRandom& random) {
  uint32_t* const columns = columns_.data() + k * stride_;
  double* const values = values_.data() + k * stride_;
  unsigned count = 0;
  while (count < problem_.nonzeros) {
    const double value = random.unit();
    const auto column = static_cast<uint32_t>(random.unit() * power);
    if (column >= rows() || std::find(columns, columns + count, column) != columns + count)
      continue;
    columns[count] = column;
    values[count++] = value;
  }
  const auto diagonal = static_cast<uint32_t>(k);
  const auto place = std::find(columns, columns + count, diagonal) - columns;
  columns[place] = diagonal;
  values[place] = kOnDiagonal;
}

void SparseVectors::sort_by_rows() {
  row_starts_.assign(rows() + 1, 0);
  for (uint64_t e = 0; e < values_.size(); ++e)
    if (values_[e] != 0) ++row_starts_[columns_[e] + 1];
  for (uint64_t row = 0; row < rows(); ++row) row_starts_[row + 1] += row_starts_[row];
  row_entries_.resize(row_starts_[rows()]);
  std::vector<uint64_t> next(row_starts_.begin(), row_starts_.end() - 1);
  for (uint64_t e = 0; e < values_.size(); ++e)
    if (values_[e] != 0) row_entries_[next[columns_[e]]++] = static_cast<uint32_t>(e);
}

void SparseVectors::make_row(uint64_t row, std::vector<Entry>& entries) const {
  BENCH_CHECK(row < rows());
  entries.clear();
  for (uint64_t at = row_starts_[row]; at < row_starts_[row + 1]; ++at) {
    const uint64_t k = row_entries_[at] / stride_;
    const double scale = weights_[k] * values_[row_entries_[at]];
    for (uint64_t e = k * stride_; e < (k + 1) * stride_; ++e)
      if (values_[e] != 0) entries.push_back({columns_[e], values_[e] * scale});
  }
  entries.push_back({static_cast<uint32_t>(row), kSmallest - problem_.shift});
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.column < b.column; });
  size_t last = 0;
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].column == entries[last].column)
      entries[last].value += entries[i].value;
    else
      entries[++last] = entries[i];
  }
  entries.resize(last + 1);
}

void SparseVectors::multiply(const double* x, double* y, std::span<double> work,
                             unsigned threads) const {
  BENCH_CHECK(threads != 0 && x != y && x != work.data() && y != work.data() &&
              work.size() == rows());
  on_threads(threads, [&](unsigned t) {
    for (uint64_t k = rows() * t / threads; k < rows() * (t + 1) / threads; ++k) {
      double sum = 0;
      for (uint64_t e = k * stride_; e < (k + 1) * stride_; ++e) sum += values_[e] * x[columns_[e]];
      work[k] = weights_[k] * sum;
    }
  });
  on_threads(threads, [&](unsigned t) {
    for (uint64_t row = rows() * t / threads; row < rows() * (t + 1) / threads; ++row) {
      double sum = (kSmallest - problem_.shift) * x[row];
      for (uint64_t at = row_starts_[row]; at < row_starts_[row + 1]; ++at)
        sum += values_[row_entries_[at]] * work[row_entries_[at] / stride_];
      y[row] = sum;
    }
  });
}

}  // namespace outcore::bench
