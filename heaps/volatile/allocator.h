// Allocator: blocks of any size in a heap's memory: small blocks come from slabs through a cache of
// the thread, larger ones are spans of their own. The allocator's own data lies in ordinary memory:
// only calls that copy or zero touch the heap's memory, and they hold no lock meanwhile.
//
// Any thread. In a forked child, allocating from the parent's allocator fails, and freeing does
// nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "core/base/assert.h"
#include "heaps/volatile/extents.h"
#include "heaps/volatile/slabs.h"
#include "heaps/volatile/thread_cache.h"

namespace outcore::heap {

class Allocator {
 public:
  // nullptr: there is no memory for its own data.
  static std::unique_ptr<Allocator> make(std::unique_ptr<HeapMemory> heap_memory,
                                         uint64_t kept_bytes_max);
  ~Allocator();  // Frees all blocks. REQUIRES: no thread is in a call.
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // 0 or -errno: -ENOMEM (no addresses or no ordinary memory), -ENOSPC (no space in the store),
  // -EPERM (a forked child). REQUIRES: bytes > 0; `alignment` is a power of two.
  int allocate(size_t bytes, size_t alignment, bool is_zeroed, void** block) {
    OC_ASSERT(bytes > 0 && (alignment & (alignment - 1)) == 0);
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
    return allocate_slowly(bytes, alignment, is_zeroed, block);
  }
  // REQUIRES: `block` is of this allocator (else the program ends), or nullptr.
  void free(void* block) {
    if (block == nullptr) return;
    const auto at = static_cast<uint64_t>(static_cast<std::byte*>(block) - memory_->base());
    if (at < capacity_bytes_) [[likely]] {
      const uint8_t c = Extents::mark_of(extents_.find(at / kUnitBytes));
      OC_ASSERT(c < kSizeClasses);
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
    free_slowly(block);
  }
  // As realloc(); on an error the old block is as it was. REQUIRES: bytes > 0.
  int resize(void* block, size_t bytes, size_t alignment, void** now);
  size_t usable_bytes(const void* block) const;  // REQUIRES: of this allocator
  bool owns(const void* p) const {
    return static_cast<uint64_t>(static_cast<const std::byte*>(p) - memory_->base()) <
           capacity_bytes_;
  }
  // Gives all free memory back, except what the caches of other threads hold.
  int trim();

  struct Sizes {
    uint64_t live_bytes, live_blocks, reserved_bytes, kept_bytes, end_bytes, metadata_bytes;
  };
  Sizes sizes() const;
  HeapMemory& memory() const { return *memory_; }

  // -- of thread_cache.cc --
  std::atomic<unsigned> ending_threads{0};  // threads that are about to call detach_cache()
  ThreadCache* attach_cache();              // nullptr: no memory
  void detach_cache(ThreadCache* cache);    // its thread has ended

 private:
  Allocator(std::unique_ptr<HeapMemory> heap_memory, uint64_t kept_bytes_max);
  int allocate_slowly(size_t bytes, size_t alignment, bool is_zeroed, void** block);
  int allocate_small(uint8_t size_class, void** block);
  int allocate_large(size_t bytes, size_t alignment, bool is_zeroed, void** block);
  void free_slowly(void* block);
  void free_large(Span* span);
  void flush(ThreadCache& cache, uint8_t size_class, uint32_t keep);
  void flush_all(ThreadCache& cache);
  Span* large_at(const void* block) const;
  bool resize_in_place(Span* span, size_t bytes);
  void zero(const Span& span);
  void count(int64_t bytes, int64_t blocks);

  Metadata metadata_;
  std::unique_ptr<HeapMemory> memory_;
  Extents extents_;
  Slabs slabs_;
  uint64_t capacity_bytes_ = 0, number_ = 0;
  mutable std::mutex caches_mutex_;
  ThreadCache *caches_ = nullptr, *idle_ = nullptr;      // all caches; those without a thread
  std::atomic<int64_t> live_bytes_{0}, live_blocks_{0};  // of calls without a cache
};

}  // namespace outcore::heap
