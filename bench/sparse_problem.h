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
  static constexpr std::optional<SparseProblem> of_class(std::string_view name);
  // The most rows that fit, otherwise as class B. REQUIRES: kBytesMin <= size_bytes <= kBytesMax
  static SparseProblem fitting(uint64_t size_bytes);

  // No matrix has more: some entries of the sum fall together.
  constexpr uint64_t entries_max() const { return rows * (nonzeros + 1) * (nonzeros + 1); }
  // Of the matrix, by rows, and of five vectors.
  uint64_t size_bytes() const;
};

constexpr std::optional<SparseProblem> SparseProblem::of_class(std::string_view name) {
  struct SparseClass {
    std::string_view name;
    SparseProblem problem;
  };
  constexpr SparseClass kClasses[] = {{"S", {1400, 7, 10, 15, 8.5971775078648}},
                                      {"W", {7000, 8, 12, 15, 10.362595087124}},
                                      {"A", {14000, 11, 20, 15, 17.130235054029}},
                                      {"B", {75000, 13, 60, 75, 22.712745482631}},
                                      {"C", {150000, 15, 110, 75, 28.973605592845}}};
  for (const SparseClass& one : kClasses)
    if (one.name == name) return one.problem;
  return std::nullopt;
}

}  // namespace outcore::bench
