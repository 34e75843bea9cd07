// SparseProblem: how large a matrix of the conjugate gradients of the NAS Parallel Benchmarks is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace outcore::bench {

// Plain values; any thread.
struct SparseProblem {
  static constexpr uint64_t kBytesMin = uint64_t{256} << 10;
  static constexpr uint64_t kBytesMax = uint64_t{512} << 30;  // vectors have indices of 32 bits

  uint64_t rows = 0;
  unsigned nonzeros = 0;  // of each of the vectors that the matrix is a sum of
  double shift = 0;
  unsigned passes = 0;
  double zeta = 0;  // the published answer after that many passes; 0: none

  // As NPB has it: S, W, A, B, C; nullopt: another.
  static std::optional<SparseProblem> of_class(std::string_view name);
  // The most rows that fit, otherwise as class B. REQUIRES: kBytesMin <= size_bytes <= kBytesMax
  static SparseProblem fitting(uint64_t size_bytes);

  // No matrix has more: some entries of the sum fall together.
  uint64_t entries_max() const { return rows * (nonzeros + 1) * (nonzeros + 1); }
  // Of the matrix, by rows, and of five vectors.
  uint64_t size_bytes() const;
};

}  // namespace outcore::bench
