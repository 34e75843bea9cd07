// BandProduct: some rows of C = A x B, with the bands of A and C in memory of its own, and B where
// it lies; after the matrix multiplication of NVMalloc (IPDPS 2012), which walks B both ways.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/matrices.h"

namespace outcore::bench {

// The ways through B: by rows, which lie one after the other, or by columns, which touch all pages.
const std::vector<std::string>& walk_orders();

// One thread.
class BandProduct {
 public:
  // Rows or columns that are taken at once, so that the bands are read a quarter as often.
  static constexpr uint64_t kLines = 4;

  // Computes the band of A; that of C is 0. REQUIRES: rows != 0, within the matrix
  BandProduct(const Matrices& matrices, uint64_t first_row, uint64_t rows);

  // Adds the product, and reads each number of B once; `see` is told how many have been read since.
  // Through all of B by rows or columns; with `tile` != 0 through blocks of tile x tile numbers,
  // one after the other in that order, and within each by rows.
  // REQUIRES: b holds B; tile is a multiple of Matrices::kSideStep
  void multiply(const double* b, bool is_by_columns, uint64_t tile,
                const std::function<void(uint64_t)>& see);

  uint64_t first_row() const { return first_row_; }
  uint64_t rows() const { return rows_; }
  std::span<const double> c() const { return c_; }

 private:
  // kLines rows of B, from k on, of which the columns [j, j_end).
  void add_rows(const double* b, uint64_t k, uint64_t j, uint64_t j_end);
  // kLines whole columns of B, from j on.
  void add_columns(const double* b, uint64_t j);
  void add_block(const double* b, uint64_t k, uint64_t j, uint64_t tile);

  uint64_t side_, first_row_, rows_;
  uint64_t rows_padded_;      // to a multiple of kSideStep
  std::vector<double> a_;     // column after column, each of rows_padded_ numbers
  std::vector<double> c_;     // row after row
  std::vector<double> sums_;  // of add_columns(): kLines columns of the band of C
};

}  // namespace outcore::bench
