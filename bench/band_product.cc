#include "bench/band_product.h"

#include <algorithm>

#include "bench/check.h"

namespace outcore::bench {
namespace {

constexpr uint64_t kStep = Matrices::kSideStep;

}  // namespace

const std::vector<std::string>& walk_orders() {
  static const std::vector<std::string> names = {"rows", "columns"};
  return names;
}

BandProduct::BandProduct(const Matrices& matrices, uint64_t first_row, uint64_t rows)
    : side_(matrices.side()),
      first_row_(first_row),
      rows_(rows),
      rows_padded_((rows + kStep - 1) / kStep * kStep),
      a_(side_ * rows_padded_),
      c_(side_ * rows),
      sums_(kLines * rows_padded_) {
  static_assert(kStep % kLines == 0);
  BENCH_CHECK(rows != 0 && first_row + rows <= side_ && side_ % kStep == 0);
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t k = 0; k < side_; ++k)
      a_[k * rows_padded_ + row] = static_cast<double>(matrices.a(first_row + row, k));
}

void BandProduct::multiply(const double* b, bool is_by_columns, uint64_t tile,
                           const std::function<void(uint64_t)>& see) {
  BENCH_CHECK(b != nullptr && tile % kStep == 0);
  if (tile == 0) {
    for (uint64_t line = 0; line < side_; line += kLines) {
      if (is_by_columns)
        add_columns(b, line);
      else
        add_rows(b, line, 0, side_);
      see(kLines * side_);
    }
    return;
  }
  for (uint64_t outer = 0; outer < side_; outer += tile)
    for (uint64_t inner = 0; inner < side_; inner += tile) {
      const uint64_t k = is_by_columns ? inner : outer, j = is_by_columns ? outer : inner;
      add_block(b, k, j, tile);
      see(std::min(tile, side_ - k) * std::min(tile, side_ - j));
    }
}

void BandProduct::add_block(const double* b, uint64_t k, uint64_t j, uint64_t tile) {
  const uint64_t k_end = std::min(k + tile, side_), j_end = std::min(j + tile, side_);
  for (; k < k_end; k += kLines) add_rows(b, k, j, j_end);
}

// The innermost loops have a fixed length, so that compilers make vectors of them.
void BandProduct::add_rows(const double* b, uint64_t k, uint64_t j, uint64_t j_end) {
  BENCH_CHECK(k + kLines <= side_ && j % kStep == 0 && j_end % kStep == 0 && j_end <= side_);
  const double* const b0 = b + k * side_;
  const double *const b1 = b0 + side_, *const b2 = b1 + side_, *const b3 = b2 + side_;
  for (uint64_t row = 0; row < rows_; ++row) {
    const double* const a = a_.data() + k * rows_padded_ + row;
    const double a0 = a[0], a1 = a[rows_padded_], a2 = a[2 * rows_padded_],
                 a3 = a[3 * rows_padded_];
    double* const c = c_.data() + row * side_;
    for (uint64_t at = j; at < j_end; at += kStep) {
      double sums[kStep];
      for (uint64_t l = 0; l < kStep; ++l)
        sums[l] = a0 * b0[at + l] + a1 * b1[at + l] + a2 * b2[at + l] + a3 * b3[at + l];
      for (uint64_t l = 0; l < kStep; ++l) c[at + l] += sums[l];
    }
  }
}

void BandProduct::add_columns(const double* b, uint64_t j) {
  BENCH_CHECK(j + kLines <= side_);
  std::fill(sums_.begin(), sums_.end(), 0.0);
  double* const sums = sums_.data();
  for (uint64_t k = 0; k < side_; ++k) {
    const double* const a = a_.data() + k * rows_padded_;
    for (uint64_t line = 0; line < kLines; ++line) {
      const double number = b[k * side_ + j + line];
      double* const column = sums + line * rows_padded_;
      for (uint64_t row = 0; row < rows_padded_; row += kStep) {
        double products[kStep];
        for (uint64_t l = 0; l < kStep; ++l) products[l] = number * a[row + l];
        for (uint64_t l = 0; l < kStep; ++l) column[row + l] += products[l];
      }
    }
  }
  for (uint64_t row = 0; row < rows_; ++row)
    for (uint64_t line = 0; line < kLines; ++line)
      c_[row * side_ + j + line] += sums[line * rows_padded_ + row];
}

}  // namespace outcore::bench
