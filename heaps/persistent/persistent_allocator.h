// Allocator: the memory of one persistent heap: cells from slabs by way of the threads' caches, and
// large objects as runs of tiles. Any thread, but what says otherwise.
//
// The thread caches are ordinary memory: up to 64 cells, or 32 KiB, of each size. An allocator is
// found by the address where its heap is mapped, so that what rests in the heap need hold no more.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "heaps/persistent/persistent_image.h"
#include "heaps/persistent/persistent_slabs.h"
#include "heaps/persistent/persistent_tiles.h"

namespace outcore::heap::persistent {

class Allocator;

// What one thread keeps of one heap.
struct Cache {
  static constexpr uint32_t kCellsMax = 64;
  struct Stack {
    uint32_t count = 0;
    void* cells[kCellsMax];
  };
  Allocator* owner = nullptr;
  bool is_taken = false;  // by a thread
  Stack stacks[kCellSizes];
};

class Allocator {
 public:
  Allocator() : slabs_(tiles_) {}
  ~Allocator();  // REQUIRES: not announced

  Status start(Region* region, std::shared_ptr<Store> store, uint64_t reserve_bytes,
               uint64_t spare_bytes) {
    return tiles_.start(region, std::move(store), reserve_bytes, spare_bytes);
  }
  // What a sound image says. Metadata elsewhere than at the offset is free.
  Status restore(const Image& image, uint64_t metadata_offset, bool has_space);

  // From now on until withdraw() the allocator is found by its base, and threads may use it.
  void announce();
  void withdraw();

  // Errors: EINVAL (alignment), ENOSPC, ENOMEM, what the store says.
  Result<void*> allocate(uint64_t size_bytes, uint64_t alignment);
  void deallocate(void* object, uint64_t size_bytes, uint64_t alignment) noexcept;
  void deallocate(void* object) noexcept;

  // Takes back what threads keep. REQUIRES: none of them is in a call.
  void hand_back() noexcept;

  Tiles& tiles() { return tiles_; }
  Slabs& slabs() { return slabs_; }
  // With what threads keep.
  uint64_t bytes_in_use() const { return slabs_.bytes_in_use() + large_bytes_.load(); }

  // The calling thread's cache of the heap that is mapped at `base`; nullptr: there is none.
  static Cache* cache_of(const void* base);
  // The allocator of that heap; nullptr: there is none, or it is read-only.
  static Allocator* owner_of(const void* base);
  static Result<void*> allocate(Cache& cache, uint64_t size_bytes, uint64_t alignment);
  static void deallocate(Cache& cache, void* object, uint64_t size_bytes,
                         uint64_t alignment) noexcept;

 private:
  friend struct ThreadCaches;

  Cache* take_cache();
  void retire(Cache* cache) noexcept;  // its thread ends
  Result<void*> allocate_large(uint64_t size_bytes);
  void deallocate_large(void* object) noexcept;
  Status fill(Cache::Stack& stack, unsigned index);
  void drain(Cache::Stack& stack, unsigned index, uint32_t keep) noexcept;

  Tiles tiles_;
  Slabs slabs_;
  std::mutex lock_;
  std::vector<std::unique_ptr<Cache>> caches_;
  std::atomic<uint64_t> large_bytes_{0};
  pid_t process_ = 0;
  uint64_t number_ = 0;  // of this opening; no other ever has it
};

}  // namespace outcore::heap::persistent
