// OwnMemory: memory for this library alone, independent of the program's heaps.
//
// A signal may interrupt the program in the middle of malloc(), and at fork() any heap may be
// locked; what this library does at such a moment must not wait for them. When the kernel has no
// memory left, a reserve from the beginning is used, so that the program can still unmap, store and
// end. Any thread; the lock is held with signals blocked, and meanwhile only the kernel is called.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::preload {

class OwnMemory {
 public:
  static constexpr size_t kReserveBytes = 512 << 10;
  // More than one call on a mapping needs. Calls that may be refused leave so much to those that
  // must succeed: msync, exit, and what a signal stores.
  static constexpr size_t kCallBytes = 64 << 10;

  // nullptr and ENOMEM: neither the kernel nor the reserve has memory. REQUIRES: `alignment` is a
  // power of two.
  static void* allocate(size_t bytes, size_t alignment);
  // Whether the block was allocated here.
  static bool has(const void* p);
  static void release(void* p);
  static size_t usable_bytes(const void* p);
  // Whether so many bytes, in blocks of 16 KiB and less, can certainly be allocated. Asked before a
  // change is begun that could not be completed without them.
  static bool has_room(size_t bytes);

  // Called around fork(), in the thread that forks, with signals blocked.
  static void before_fork();
  static void after_fork();
};

}  // namespace outcore::preload
