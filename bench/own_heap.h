// OwnHeap: makes and opens a PersistentHeap as the memory of a run has it: outcore in a region of
// its runtime, mmap and mmap-random over the kernel's mapping.
#pragma once

#include <memory>
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
  // For a process that only makes a heap: with a runtime of its own, of the options' budget, if the
  // memory needs one. It outlives its heaps. Errors: those of Runtime::start().
  static Result<OwnHeap> alone(const std::string& memory, const Options& options);

  // Errors: those of PersistentHeap.
  Result<PersistentHeap> create(const std::string& uri) const;
  Result<PersistentHeap> open(const std::string& uri) const;
  Result<PersistentHeap> open_read_only(const std::string& uri) const;

 private:
  std::shared_ptr<Runtime> started_;  // by alone(); `runtime_` is then this one
  Runtime* runtime_;
  PersistentHeapOptions options_;
};

}  // namespace outcore::bench
