// PoissonGrid: the grid of the Himeno benchmark, and what its fourteen arrays begin with.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/options.h"
#include "bench/random.h"

namespace outcore::bench {

// Plain values; any thread.
struct PoissonGrid {
  // By Himeno's names: the solution, where it is sought, two arrays for work, and coefficients.
  enum Array : unsigned { kP, kBnd, kWrk1, kWrk2, kA, kB = kA + 4, kC = kB + 3, kArrays = kC + 3 };

  uint64_t i = 0, j = 0, k = 0;  // planes, rows of a plane, cells of a row

  // The largest whose arrays fit, of about 1 : 1 : 2.
  // REQUIRES: size_bytes has a unit for each array
  static PoissonGrid fitting(uint64_t size_bytes);
  // Himeno itself has no such classes: S, W, A and B are sizes of the program with static arrays.
  // nullopt: another.
  static constexpr std::optional<PoissonGrid> of_class(std::string_view name);

  constexpr uint64_t cells() const { return i * j * k; }
  uint64_t inner() const { return (i - 2) * (j - 2) * (k - 2); }
  uint64_t array_bytes() const {
    return (cells() * sizeof(float) + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
  }
  // What the cell `at` of an array begins with: Himeno's value and, of the coefficients, a little
  // more.
  float first_value(unsigned array, uint64_t at) const;
};

constexpr std::optional<PoissonGrid> PoissonGrid::of_class(std::string_view name) {
  struct GridClass {
    std::string_view name;
    PoissonGrid grid;
  };
  // 2, 24 and 96 MiB, as fitting() has them, and what the DLM paper measured, 1.9 GB: static arrays
  // of 2 GiB or more do not link in plain memory.
  constexpr GridClass kClasses[] = {
      {"S", {26, 26, 54}}, {"W", {60, 60, 124}}, {"A", {96, 96, 195}}, {"B", {257, 257, 513}}};
  for (const GridClass& one : kClasses)
    if (one.name == name) return one.grid;
  return std::nullopt;
}

inline float PoissonGrid::first_value(unsigned array, uint64_t at) const {
  if (array == kWrk2) return 0;
  if (array == kP) {
    const uint64_t plane = at / (j * k);
    const auto place = static_cast<float>(plane);
    const auto most = static_cast<float>(i - 1);
    return place * place / (most * most);
  }
  const auto more = static_cast<float>(static_cast<int>(mix((uint64_t{array} << 48) + at) >> 54));
  const float base = array == kA + 3                 ? 1.0F / 6
                     : array == kWrk1                ? 0.0F
                     : array >= kB && array < kB + 3 ? 0.0F
                                                     : 1.0F;
  return base + (more - 512) * 0x1p-22F;
}

}  // namespace outcore::bench
