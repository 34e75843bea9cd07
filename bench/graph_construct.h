// graph-construct: adjacency lists of an R-MAT graph, built edge by edge as it would arrive: a hash
// map from vertices to vectors of neighbours, in memory or in a heap that outlives the program.
#pragma once

#include <memory>

#include "bench/options.h"
#include "bench/workload.h"

namespace outcore::bench {

// Memories: malloc (the standard library's containers), mmap and mmap-random (Boost.Interprocess'
// managed_mapped_file with Boost's containers; with options.allocator "own" a PersistentHeap over
// the kernel's mapping), outcore (a PersistentHeap, default settings; with options.allocator
// "boost" Boost's in a region). With several threads each builds the lists of its share of the
// vertices.
std::unique_ptr<Workload> make_graph_construct(const Options& options);

}  // namespace outcore::bench
