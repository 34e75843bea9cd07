// Alloc: what allocates in the workload `alloc`: a heap, or the program's malloc.
#pragma once

#include <cstdlib>

#include "bench/stage.h"
#include "outcore/heap.h"

namespace outcore::bench {

// Any thread.
class BlockSource {
 public:
  explicit BlockSource(Heap* heap) : heap_(heap) {}  // nullptr: malloc
  void* take(size_t bytes) {
    return heap_ != nullptr ? heap_->allocate(bytes) : std::malloc(bytes);
  }
  void give(void* block) { heap_ != nullptr ? heap_->free(block) : std::free(block); }

 private:
  Heap* heap_;
};

}  // namespace outcore::bench
