#include "run/preload/bootstrap_memory.h"

#include <algorithm>
#include <atomic>

namespace outcore::preload {

alignas(64) constinit unsigned char BootstrapMemory::memory_[kBytesMax] = {};

namespace {
constinit std::atomic<size_t> used{0};
}

void* BootstrapMemory::allocate(size_t bytes, size_t alignment) {
  alignment = std::max<size_t>(alignment, 16);
  if (bytes > kBytesMax || alignment > kBytesMax) return nullptr;
  size_t seen = used.load(std::memory_order_relaxed), at = 0;
  do {
    const uintptr_t start = reinterpret_cast<uintptr_t>(memory_);
    at = ((start + seen + alignment - 1) & ~(alignment - 1)) - start;
    if (at + bytes > kBytesMax) return nullptr;
  } while (!used.compare_exchange_weak(seen, at + bytes));
  return memory_ + at;
}

}  // namespace outcore::preload
