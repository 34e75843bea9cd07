// OwnMemory: blocks of memory for this library alone, apart from every heap that the program has.
//
// A signal may interrupt the program in the middle of its malloc(), and fork() may find any heap
// locked: what this library does at such a moment must not wait for them. A reserve that is there
// from the beginning serves when the kernel has no memory left, so that what the program unmaps,
// stores or ends can still be unmapped, stored and ended. Any thread; the lock is held with signals
// blocked, and never while anything else is called but the kernel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace outcore::preload {

class OwnMemory {
 public:
  static constexpr size_t kReserveBytes = 512 << 10;
  // More than one call on a mapping needs. Calls that could be refused leave as much to those that
  // must not be: msync, exit, what a signal stores.
  static constexpr size_t kCallBytes = 64 << 10;

  // nullptr and ENOMEM: neither the kernel nor the reserve has any. REQUIRES: `alignment` is a
  // power of two.
  static void* allocate(size_t bytes, size_t alignment);
  // False if the block is not from here.
  static bool has(const void* p);
  static void release(void* p);
  static size_t usable_bytes(const void* p);
  // Blocks of 16 KiB and less, so many bytes together, can be had for certain: to be asked before
  // something is changed that could not be completed without.
  static bool has_room(size_t bytes);

  // Around fork(), in the thread that calls it, with signals blocked.
  static void before_fork();
  static void after_fork();
};

}  // namespace outcore::preload
