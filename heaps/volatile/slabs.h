// Slabs: blocks of one size class, in spans with a bitmap of free blocks. A free block contains no
// data of the allocator, so finding one never touches the heap's memory.
//
// Any thread; each class has a lock, which is locked for batches.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "heaps/volatile/extents.h"
#include "heaps/volatile/size_class.h"

namespace outcore::heap {

class Slabs {
 public:
  Slabs(HeapMemory& heap_memory, Extents& extents, Metadata& metadata)
      : memory_(heap_memory), extents_(extents), metadata_(metadata) {}

  // Takes free blocks of the class that are at hand, at least one and at most blocks.size();
  // returns how many. 0: none, and *error says why (-ENOMEM, -ENOSPC).
  size_t allocate(uint8_t size_class, std::span<std::byte*> blocks, int* error);
  // REQUIRES: the blocks are allocated, and all belong to this class. A block that is already free
  // stops the program.
  void free(uint8_t size_class, std::span<std::byte* const> blocks);
  // Slabs that are empty become free space.
  void release_empty();

 private:
  struct alignas(64) Bin {
    std::mutex mutex;
    Span* with_room = nullptr;
    Span* empty = nullptr;  // one is kept, for threads that free and allocate in turns
  };

  size_t allocate_from(Span* span, std::byte** blocks, size_t count) const;
  void free_one(Bin& bin, uint8_t size_class, std::byte* block, Span** gone);
  Span* make(uint8_t size_class, int* error);
  void end(Span* span);
  static void list(Bin& bin, Span* span);
  static void unlist(Bin& bin, Span* span);

  HeapMemory& memory_;
  Extents& extents_;
  Metadata& metadata_;
  std::array<Bin, kSizeClasses> bins_;
};

}  // namespace outcore::heap
