// Matrices: the factors of a product, computed from place and seed, and a check of the product.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bench/random.h"

namespace outcore::bench {

// Square matrices A and B of whole numbers from -8 to 7, as doubles: sums of products are exact in
// any order. Any thread.
class Matrices {
 public:
  static constexpr uint64_t kSideStep = 8;  // sides are multiples of it: loops have no remainders
  static constexpr uint64_t kBytesMin = uint64_t{32} << 10;  // a side of 64

  // B has at most `b_bytes_max`. REQUIRES: b_bytes_max >= kBytesMin
  Matrices(uint64_t b_bytes_max, uint64_t seed);

  uint64_t side() const { return side_; }
  // Of one matrix, row after row.
  uint64_t size_bytes() const { return side_ * side_ * sizeof(double); }
  int64_t a(uint64_t row, uint64_t column) const { return at(a_key_, row * side_ + column); }
  int64_t b(uint64_t row, uint64_t column) const { return at(b_key_, row * side_ + column); }

 private:
  // Sixteen numbers of four bits come from each mix().
  static int64_t at(uint64_t key, uint64_t index) {
    const uint64_t sixteen = mix(key + index / 16);
    return static_cast<int64_t>(sixteen >> (index % 16 * 4) & 15) - 8;
  }
  uint64_t side_, a_key_, b_key_;
};

// ProductCheck: whether C = A x B, in time of the order of the side squared: for random vectors r
// it compares C r with A (B r), both in whole numbers (Freivalds 1979). A wrong row passes with a
// probability of 2^-32. Any thread, when it is made.
class ProductCheck {
 public:
  // Computes B r from the generator, on several threads. `matrices` outlives the check.
  ProductCheck(const Matrices& matrices, uint64_t seed);
  // Rows of C that are not those of the product. `c` holds whole rows, from `first_row` on.
  // REQUIRES: they lie within the matrix
  uint64_t wrong_rows(uint64_t first_row, std::span<const double> c) const;

 private:
  static constexpr unsigned kVectors = 2;
  static constexpr uint64_t kNumbers = 65536;  // in a vector: 0 … 65535; sums stay below 2^63
  bool is_right(uint64_t row, const double* c) const;

  const Matrices& matrices_;
  std::vector<int64_t> random_[kVectors], b_times_random_[kVectors];
};

}  // namespace outcore::bench
