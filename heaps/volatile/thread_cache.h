// ThreadCache: free blocks that a thread keeps for itself, by size class: pointers to them, in
// ordinary memory. Only its own thread uses it, unless said otherwise.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heaps/volatile/size_class.h"

namespace outcore::heap {

class Allocator;

struct ThreadCache {
  struct Stack {
    std::byte** blocks = nullptr;  // room for cached_max of the class; nullptr: not used yet
    uint32_t count = 0;
  };

  Allocator* owner = nullptr;
  ThreadCache *next = nullptr, *next_idle = nullptr;  // all of the owner; those that no thread has
  std::array<Stack, kSizeClasses> stacks{};
  // Usable bytes and blocks that the thread took, less those that it gave back: below 0 where
  // others took them. Any thread reads them.
  std::atomic<int64_t> live_bytes{0}, live_blocks{0};

  void count_one(int64_t bytes, int64_t blocks) {
    live_bytes.store(live_bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
    live_blocks.store(live_blocks.load(std::memory_order_relaxed) + blocks,
                      std::memory_order_relaxed);
  }
};

// This thread's cache of an allocator. The number of an allocator is never used again, so what is
// left of one that has ended is never found.
namespace thread_caches {

inline constexpr size_t kNear = 8;
struct Near {
  uint64_t number = 0;
  ThreadCache* cache = nullptr;
};
extern thread_local constinit Near near[kNear];

// nullptr: call far(), which makes a cache.
inline ThreadCache* find(uint64_t number) {
  const Near& entry = near[number % kNear];
  return entry.number == number ? entry.cache : nullptr;
}
// The cache, which is made if there is none. nullptr: there can be none, because the thread is
// ending, memory is short, or the process is a forked child and the allocator is its parent's.
ThreadCache* far(Allocator& allocator, uint64_t number);

// An allocator begins, and gets its number. From enter() to leave(), ending threads give their
// caches back to it; leave() waits for threads that are about to.
uint64_t enter(Allocator& allocator);
void leave(Allocator& allocator, uint64_t number);
// True in a forked child, if the allocator is its parent's.
bool is_parents(uint64_t number);

}  // namespace thread_caches
}  // namespace outcore::heap
