// Scene: heaps for tests: a runtime with a small budget that no environment changes, and blocks
// that say whether their bytes are right.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "outcore/heap.h"

namespace outcore::tests {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

inline Runtime start(uint64_t budget_bytes) {
  RuntimeOptions options;
  options.budget_bytes = budget_bytes;
  options.ignore_environment = true;
  return std::move(Runtime::start(options)).value();
}

inline Heap make_heap(Runtime& runtime, const HeapOptions& options = {}) {
  return std::move(Heap::create(runtime, options)).value();
}

// A block whose bytes come from a seed: those at its ends and one in each 512.
struct Block {
  unsigned char* bytes = nullptr;
  size_t size = 0;
  uint64_t seed = 0;

  unsigned char byte_at(size_t i) const {
    return static_cast<unsigned char>((seed + i / 512) * 0x9e3779b97f4a7c15 >> 56);
  }
  template <typename F>
  void for_each(size_t end, F f) const {
    for (size_t i = 0; i < end; i += 512) f(i);
    if (end > 0) f(end - 1);
  }
  void fill() const {
    for_each(size, [&](size_t i) { bytes[i] = byte_at(i); });
  }
  bool is_right() const { return is_right(size); }
  // Of the first `end` bytes; after a resize only what lies at multiples of 512 is known.
  bool is_right(size_t end) const {
    bool is = true;
    for (size_t i = 0; i < end; i += 512) is = is && bytes[i] == byte_at(i);
    return is && (end != size || size == 0 || bytes[size - 1] == byte_at(size - 1));
  }
};

// Sizes as programs have them: most small, some of pages, few large.
inline size_t some_size(std::mt19937_64& random, size_t large_max) {
  switch (random() % 16) {
    case 0:
      return 1 + random() % large_max;
    case 1:
    case 2:
      return 1 + random() % (64 << 10);
    case 3:
    case 4:
    case 5:
      return 1 + random() % 4096;
    default:
      return 1 + random() % 256;
  }
}

}  // namespace outcore::tests
