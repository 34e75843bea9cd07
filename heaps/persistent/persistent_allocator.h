// Allocator: the memory of one persistent heap. Small objects are cells of slabs, which threads
// take from caches of their own; large objects are runs of tiles. Any thread, unless said
// otherwise.
//
// The caches of threads are in ordinary memory: up to 64 cells, or 32 KiB, of each size. The
// allocator is found by the address at which its heap is mapped, so nothing in the heap need point
// to it.
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

// The free cells of one heap that one thread keeps.
struct Cache {
  static constexpr uint32_t kCellsMax = 64;
  struct Stack {
    uint32_t count = 0;
    void* cells[kCellsMax];
  };
  Allocator* owner = nullptr;
  bool is_taken = false;  // a thread uses it
  Stack stacks[kCellSizes];
};

class Allocator {
 public:
  Allocator() : slabs_(tiles_) {}
  ~Allocator();  // REQUIRES: withdrawn

  Status start(Mapping* mapping, std::shared_ptr<Store> store, uint64_t reserve_bytes,
               uint64_t spare_bytes) {
    return tiles_.start(mapping, std::move(store), reserve_bytes, spare_bytes);
  }
  // Restores what a sound image says. If metadata lies elsewhere than at the offset, its space is
  // free.
  Status restore(const Image& image, uint64_t metadata_offset, bool has_space);

  // From now on until withdraw() threads find the allocator by its base, and may use it.
  void announce();
  void withdraw();

  // Errors: EINVAL (alignment), ENOSPC, ENOMEM, and those of the store.
  Result<void*> allocate(uint64_t size_bytes, uint64_t alignment);
  void deallocate(void* object, uint64_t size_bytes, uint64_t alignment) noexcept;
  void deallocate(void* object) noexcept;

  // Frees the cells that threads keep in their caches. REQUIRES: no thread is in a call.
  void hand_back() noexcept;

  Tiles& tiles() { return tiles_; }
  Slabs& slabs() { return slabs_; }
  // Includes the cells that threads keep.
  uint64_t bytes_in_use() const { return slabs_.bytes_in_use() + large_bytes_.load(); }

  // The calling thread's cache of the heap that is mapped at `base`; nullptr: it has none.
  static Cache* cache_of(const void* base);
  // The allocator of the heap that is mapped at `base`; nullptr: there is none, or the heap is
  // read-only.
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
  uint64_t number_ = 0;  // names this opening of the heap; never used again
};

}  // namespace outcore::heap::persistent
