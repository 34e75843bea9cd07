// KmerHeap: `outcore bench kmers --table heap`: reads told by LMAT's index of two levels in a heap
// that outlives the program.
#pragma once

#include <memory>

#include "bench/options.h"
#include "bench/workload.h"

namespace outcore::bench {

// Memories: malloc (the standard library's vectors), mmap and mmap-random (Boost's in a
// managed_mapped_file of Boost.Interprocess), outcore (vectors in a PersistentHeap; with
// options.allocator "own" mmap and mmap-random have the same). But for malloc another process has
// made the index, in a file, before the first run opens it, to read alone.
// REQUIRES: the options' index is two-level
std::unique_ptr<Workload> make_kmers_in_heap(const Options& options);

}  // namespace outcore::bench
