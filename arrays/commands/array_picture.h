// ArrayPicture: draws numbers in colours. A plane becomes a map of pixels, a row a curve. NaNs are
// hatched, so that they are not taken for numbers. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

struct Picture {
  uint32_t width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows, from the top
};

// Statistics of the numbers.
struct Numbers {
  double min = 0, max = 0, sum = 0;  // of the finite ones
  uint64_t finite = 0, nan = 0, infinite = 0;
  void add(double value);
  double mean() const { return finite == 0 ? 0 : sum / static_cast<double>(finite); }
};

// The cells of a plane, each of which stands for many numbers: the mean of the finite ones.
class Cells {
 public:
  Cells(uint64_t rows, uint64_t columns, uint64_t side_max);
  void add(uint64_t row, uint64_t column, double value);
  uint64_t rows() const { return rows_; }
  uint64_t columns() const { return columns_; }
  double at(uint64_t row, uint64_t column) const;  // NaN: no finite number
  double low(uint64_t row, uint64_t column) const;
  double high(uint64_t row, uint64_t column) const;

 private:
  struct Cell {
    double sum = 0, low = 0, high = 0;
    uint32_t count = 0;
  };
  uint64_t all_rows_, all_columns_, rows_, columns_;
  std::vector<Cell> cells_;
};

// "viridis", "magma", "coolwarm", "gray".
std::vector<std::string> color_names();

// Draws the first row on top, with colours from `low` to `high`. REQUIRES: a name of color_names().
Picture map_of(const Cells& cells, double low, double high, const std::string& colors);
// Draws one row of cells as a curve; between the lowest and highest number of each cell it is
// filled.
Picture curve_of(const Cells& cells, double low, double high);

// Errors: ENOTSUP (built without libpng), and those of the system.
Status write_png(const Picture& picture, const std::string& path);

}  // namespace outcore::cli
