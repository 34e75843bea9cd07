// Memory: what a workload's data lives in: Outcore, or one of its rivals, behind the same calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/extra.h"
#include "bench/options.h"
#include "outcore/heap.h"
#include "outcore/result.h"
#include "outcore/runtime.h"

namespace outcore::bench {

struct MapRequest {
  std::string uri;      // a path, but for outcore, which takes any store
  uint64_t offset = 0;  // a multiple of the page size
  uint64_t size_bytes = 0;
  bool is_writable = false;
  std::byte* address = nullptr;  // where it must be; nullptr: anywhere
  // All of it is written before it is read, and nobody reads it afterwards: a store on servers is
  // made, and memory is neither loaded from the file nor stored to it.
  bool is_fresh = false;
};

// Sums since the memory was made.
struct MemoryUsage {
  uint64_t fills = 0;       // outcore: pages brought in; others: major faults
  uint64_t read_bytes = 0;  // outcore: from its stores; others: from the device, for this process
  uint64_t written_bytes = 0;
  // As the kernel counts them, of this process: a page was read for it, or had only to be mapped.
  uint64_t major_faults = 0, minor_faults = 0;
  Extra extra;
};

// One thread makes, maps and closes; any thread touches. Made in the process that uses it.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual Result<std::span<std::byte>> map(const MapRequest& request) = 0;
  virtual Status flush() = 0;  // the file has every byte that was written
  virtual Status close() = 0;  // unmaps everything
  // Brings in a part of what map() gave, which stays in memory until close(): outcore pins it, the
  // kernel's memories lock it, and dram has it. Errors: what Region::pin() or mlock() says.
  virtual Status pin(std::span<const std::byte> part) = 0;
  // A hint, for any thread: begins to bring in pages of `mapped`, which map() gave, by numbers of
  // pages of page_bytes(): Region::prefetch() of outcore, and MADV_WILLNEED of each for the others.
  virtual Status prefetch(std::span<const std::byte> mapped, std::span<const uint64_t> pages) = 0;
  virtual MemoryUsage usage() const = 0;
  virtual uint64_t page_bytes() const { return 4096; }
  // A heap in this memory. Errors: those of Heap; EINVAL (mmap, direct, two-pass).
  virtual Result<Heap> make_heap() = 0;
  // What runs it; nullptr: not Outcore.
  virtual Runtime* runtime() { return nullptr; }
};

// dram: anonymous memory with 4 KiB pages, loaded from the file. dram-huge: with huge pages.
// swap: as dram, under the memory limit, with a swap file beside the data (swap_file.h).
// mmap: the kernel's, with its readahead. mmap-random: with MADV_RANDOM. mmap-dontneed: and with a
// helper beside that takes what is only read out of the page table (page_dropper.h). direct: maps
// nothing; the workload reads with O_DIRECT (direct.h). malloc: maps nothing; the program's.
// two-pass: maps nothing; the budget is plain memory for runs of a sort (two_pass_sort.h).
// outcore: by its public API, with the budget's share of one of options.processes, or all of it in
// options.buffer.
// outcore-random: without its readahead.
Result<std::unique_ptr<Memory>> make_memory(const std::string& name, const Options& options);
std::unique_ptr<Memory> make_plain_memory(const std::string& name);
Result<std::unique_ptr<Memory>> make_outcore_memory(const Options& options);

// The names above, in the order of `all`.
const std::vector<std::string>& memory_names();
inline bool is_outcore(const std::string& name) { return name.starts_with("outcore"); }
// Memories in which there is a heap for containers: the program's own, Boost's in a mapped file,
// and a PersistentHeap.
inline bool has_object_heap(const std::string& name) {
  return name == "malloc" || name == "mmap" || name == "mmap-random" || name == "outcore";
}
// What the kernel counted for this process: major faults, and bytes from and to devices.
MemoryUsage kernel_usage();

}  // namespace outcore::bench
