// MappedHeap: a heap of Boost.Interprocess in a file that is mapped, the rival of a PersistentHeap.
#pragma once

#include <boost/interprocess/allocators/allocator.hpp>
#include <boost/interprocess/managed_mapped_file.hpp>
#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace outcore::bench {

using MappedHeap = boost::interprocess::managed_mapped_file;
using MappedHeapError = boost::interprocess::interprocess_exception;
template <typename T>
using InMappedHeap = boost::interprocess::allocator<T, MappedHeap::segment_manager>;

// A new one, with all of its blocks: who writes to a mapped file on a full disk dies of it. Throws
// MappedHeapError, too.
Result<MappedHeap> make_mapped_heap(const std::string& path, uint64_t size_bytes);
// One that is there, to read alone or to write, too; for the memory mmap-random with MADV_RANDOM.
// Of one that is read only find_no_lock() finds objects. Throws MappedHeapError, too.
Result<MappedHeap> open_mapped_heap(const std::string& path, bool may_write,
                                    const std::string& memory);
Status flush_mapped_heap(MappedHeap& heap, const std::string& path);

}  // namespace outcore::bench
