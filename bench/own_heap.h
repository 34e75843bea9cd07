// OwnHeap: makes and opens a PersistentHeap as the memory of a run has it: outcore in a region of
// its runtime, mmap and mmap-random over the kernel's mapping.
#pragma once

#include <string>

#include "bench/memory.h"
#include "bench/options.h"
#include "outcore/persistent_heap.h"

namespace outcore::bench {

// Whether heaps of this memory are PersistentHeaps, and not Boost's. By default outcore's are.
inline bool has_own_heap(const Options& options, const std::string& memory) {
  if (is_outcore(memory)) return options.allocator != "boost";
  return memory.starts_with("mmap") && options.allocator == "own";
}

class OwnHeap {
 public:
  // `runtime`: of the memory, which outlives it. REQUIRES: nullptr for mmap and mmap-random, and
  // for them alone.
  OwnHeap(Runtime* runtime, const std::string& memory, const Options& options);

  // Errors: those of PersistentHeap.
  Result<PersistentHeap> create(const std::string& uri) const;
  Result<PersistentHeap> open(const std::string& uri) const;
  Result<PersistentHeap> open_read_only(const std::string& uri) const;

 private:
  Runtime* runtime_;
  PersistentHeapOptions options_;
};

}  // namespace outcore::bench
