// value_at: what tests store at a place of an array of three dimensions: another number at each.
#pragma once

#include <cstdint>

namespace outcore::scene {

inline double value_at(uint64_t x, uint64_t y, uint64_t z) {
  return static_cast<double>(x * 10'000'000 + y * 10'000 + z);
}

}  // namespace outcore::scene
