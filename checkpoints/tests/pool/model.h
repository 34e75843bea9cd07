// Model: what the objects of a pool must hold, as stamps of units of 256 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace outcore::versioned_test {

inline constexpr uint64_t kUnit = 256;

// Units of an object; 0: zeros.
using Units = std::vector<uint32_t>;

struct Model {
  std::map<std::string, Units> objects;
  bool operator==(const Model&) const = default;
};

// What a pool has after a loss of power: its last commit, and its checkpoints.
struct Outcome {
  std::shared_ptr<const Model> last = std::make_shared<Model>();
  std::map<std::string, std::shared_ptr<const Model>> checkpoints;
};

inline void fill_unit(std::byte* into, uint32_t stamp) {
  if (stamp == 0) {
    std::memset(into, 0, kUnit);
    return;
  }
  for (uint64_t i = 0; i < kUnit / 8; ++i) {
    const uint64_t word = (stamp + 1) * 0x9E3779B97F4A7C15ull ^ i * 0xD6E8FEB86659FD93ull;
    std::memcpy(into + i * 8, &word, 8);
  }
}

inline bool is_unit(const std::byte* bytes, uint32_t stamp) {
  std::byte expected[kUnit];
  fill_unit(expected, stamp);
  return std::memcmp(bytes, expected, kUnit) == 0;
}

}  // namespace outcore::versioned_test
