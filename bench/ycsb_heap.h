// YcsbHeap: `outcore bench ycsb --table heap`: the mixes of YCSB on a hash table in a heap that
// outlives the program.
#pragma once

#include <memory>

#include "bench/options.h"
#include "bench/workload.h"

namespace outcore::bench {

// Memories: malloc (the standard library's unordered_map), mmap and mmap-random (Boost's in a
// managed_mapped_file of Boost.Interprocess), outcore (a hash_map, and the records that it points
// to, in a PersistentHeap; with options.allocator "own" mmap and mmap-random have the same). But
// for malloc another process has made the table, in a file, before the run opens it; and when the
// run has closed it, it is opened again, and looked through.
std::unique_ptr<Workload> make_ycsb_in_heap(const Options& options);

}  // namespace outcore::bench
