// OwnSlots: which addresses OwnMemory has mapped, in whole slots of 256 KiB. This library also
// frees what the C library has allocated on its behalf, in the program's heap; of the memory around
// such a block nothing is known, so it must not be looked at. Any thread, without a lock, in signal
// handlers, too.
#pragma once

#include <cstddef>

namespace outcore::preload {

class OwnSlots {
 public:
  static constexpr size_t kBytes = 256 << 10;

  // New memory, of zeros, which begins with a slot. nullptr and errno: the kernel has none.
  // REQUIRES: whole slots.
  static std::byte* map(size_t bytes);
  // What map() returned.
  static void unmap(std::byte* p, size_t bytes);
  static bool has(const void* p);
};

}  // namespace outcore::preload
