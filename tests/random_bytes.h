// RandomBytes: bytes that are the same for the same seed, and look like nothing else.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace outcore::scene {

inline std::vector<std::byte> random_bytes(size_t count, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count);
  for (size_t at = 0; at < count; at += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(bytes.data() + at, &word, std::min(count - at, sizeof word));
  }
  return bytes;
}

}  // namespace outcore::scene
