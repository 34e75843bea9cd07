// BootstrapMemory: memory for allocations that are made while the real functions are looked up,
// because looking them up may allocate. A few KiB, never freed. Any thread; allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::preload {

class BootstrapMemory {
 public:
  static constexpr size_t kBytesMax = 64 << 10;

  // Reads zero. nullptr: there is no more. REQUIRES: `alignment` is a power of two.
  static void* allocate(size_t bytes, size_t alignment);
  static bool has(const void* p) {
    return reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(memory_) < kBytesMax;
  }
  // The bytes of the block and of all that follows it: as many as may be copied.
  static size_t bytes_from(const void* p) {
    return kBytesMax - (reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(memory_));
  }

 private:
  alignas(64) static unsigned char memory_[kBytesMax];
};

}  // namespace outcore::preload
