// StreamSize: how long the three arrays of STREAM are.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "bench/options.h"

namespace outcore::bench {

// Plain values; any thread.
struct StreamSize {
  static constexpr unsigned kArrays = 3;

  uint64_t elements = 0;  // of each array

  // The most that fit, in whole units.
  static constexpr StreamSize fitting(uint64_t size_bytes) {
    return {size_bytes / kArrays / kUnitBytes * kUnitBytes / sizeof(double)};
  }
  // STREAM itself has no classes: S, W, A and B are sizes of the program with static arrays.
  // nullopt: another.
  static constexpr std::optional<StreamSize> of_class(std::string_view name);

  constexpr uint64_t size_bytes() const { return kArrays * elements * sizeof(double); }
};

constexpr std::optional<StreamSize> StreamSize::of_class(std::string_view name) {
  struct SizeClass {
    std::string_view name;
    uint64_t size_mib;
  };
  // Static arrays of 2 GiB or more do not link in plain memory.
  constexpr SizeClass kClasses[] = {{"S", 2}, {"W", 24}, {"A", 96}, {"B", 1536}};
  for (const SizeClass& one : kClasses)
    if (one.name == name) return fitting(one.size_mib << 20);
  return std::nullopt;
}

}  // namespace outcore::bench
