// Allocator: blocks of any size out of a ground: small ones from slabs by way of the thread's
// cache, larger ones as spans of their own. What it knows lies in ordinary memory: no call but
// copying and zeroing touches the ground, and those hold no lock.
//
// Any thread. A forked child can take nothing from its parent's, and gives back to nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "heaps/volatile/extents.h"
#include "heaps/volatile/slabs.h"
#include "heaps/volatile/thread_cache.h"

namespace outcore::heap {

class Allocator {
 public:
  // nullptr: no memory for what it must know.
  static std::unique_ptr<Allocator> make(std::unique_ptr<Ground> ground, uint64_t kept_bytes_max);
  ~Allocator();  // REQUIRES: no thread is in a call. Blocks that are left go with the ground.
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // 0 or -errno: -ENOMEM (addresses, ordinary memory), -ENOSPC (the ground's), -EPERM (a forked
  // child). REQUIRES: bytes > 0; `alignment` is a power of two.
  int take(size_t bytes, size_t alignment, bool is_zeroed, void** block) {
    if (bytes <= kSmallBytesMax && alignment <= 16 && !is_zeroed) {
      ThreadCache* const cache = thread_caches::find(number_);
      const uint8_t c = class_of(bytes);
      if (cache != nullptr && cache->stacks[c].count > 0) [[likely]] {
        ThreadCache::Stack& stack = cache->stacks[c];
        *block = stack.blocks[--stack.count];
        cache->count_one(kSizes[c].block_bytes, 1);
        return 0;
      }
    }
    return take_slowly(bytes, alignment, is_zeroed, block);
  }
  // REQUIRES: `block` is of this allocator (else the program ends), or nullptr.
  void give(void* block) {
    if (block == nullptr) return;
    const auto at = static_cast<uint64_t>(static_cast<std::byte*>(block) - ground_->base());
    if (at < capacity_bytes_) [[likely]] {
      const uint8_t c = Extents::mark_of(extents_.find(at / kUnitBytes));
      ThreadCache* const cache = thread_caches::find(number_);
      if (c != 0 && cache != nullptr) [[likely]] {
        ThreadCache::Stack& stack = cache->stacks[c];
        if (stack.blocks != nullptr && stack.count < kSizes[c].cached_max) [[likely]] {
          stack.blocks[stack.count++] = static_cast<std::byte*>(block);
          cache->count_one(-int64_t{kSizes[c].block_bytes}, -1);
          return;
        }
      }
    }
    give_slowly(block);
  }
  // As realloc(); on an error the old block is as it was. REQUIRES: bytes > 0.
  int resize(void* block, size_t bytes, size_t alignment, void** now);
  size_t usable_bytes(const void* block) const;  // REQUIRES: of this allocator
  bool owns(const void* p) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(p) - ground_->base()) <
           capacity_bytes_;
  }
  // Gives all that is free back to the ground, but what other threads keep for themselves.
  int trim();

  struct Sizes {
    uint64_t live_bytes, live_blocks, reserved_bytes, kept_bytes, end_bytes, metadata_bytes;
  };
  Sizes sizes() const;
  Ground& ground() const { return *ground_; }

  // -- of thread_cache.cc --
  std::atomic<unsigned> ending_threads{0};  // that are about to take_back()
  ThreadCache* lend_cache();                // nullptr: no memory
  void take_back(ThreadCache* cache);       // its thread has ended

 private:
  Allocator(std::unique_ptr<Ground> ground, uint64_t kept_bytes_max);
  int take_slowly(size_t bytes, size_t alignment, bool is_zeroed, void** block);
  int take_small(uint8_t size_class, void** block);
  int take_large(size_t bytes, size_t alignment, bool is_zeroed, void** block);
  void give_slowly(void* block);
  void give_large(Span* span);
  void flush(ThreadCache& cache, uint8_t size_class, uint32_t keep);
  void flush_all(ThreadCache& cache);
  Span* large_at(const void* block) const;
  bool resize_in_place(Span* span, size_t bytes);
  void zero(const Span& span);
  void count(int64_t bytes, int64_t blocks);

  Metadata metadata_;
  std::unique_ptr<Ground> ground_;
  Extents extents_;
  Slabs slabs_;
  uint64_t capacity_bytes_ = 0, number_ = 0;
  mutable std::mutex caches_mutex_;
  ThreadCache *caches_ = nullptr, *idle_ = nullptr;      // lent ones are in `caches_`, too
  std::atomic<int64_t> live_bytes_{0}, live_blocks_{0};  // of calls without a cache
};

}  // namespace outcore::heap
