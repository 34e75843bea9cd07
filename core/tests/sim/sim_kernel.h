// SimKernel: what the simulated caches share: addresses, their page tables, and the memory in use.
//
// A page-table entry is present or not, and has a write protection that outlives the page (the
// marker of userfaultfd). For memory files under WP_ASYNC, entries that are not protected are
// reported as written, present or not. See docs/internals/kernel-facts.md.
// present or not. See docs/internals/kernel-facts.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/os/frames.h"
#include "core/tests/sim/fibers.h"

namespace outcore::sim {

class SimFrames;

struct PageEntry {
  bool is_present = false;
  bool is_protected = false;
};

// One attached range.
struct Mapping {
  std::byte* address = nullptr;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
  bool is_writable = false;
  SimFrames* owner = nullptr;
  bool is_ending = false;  // no thread touches it any more: what it shows does not matter
  std::vector<PageEntry> entry;

  std::byte* end() const { return address + size_bytes; }
};

class SimKernel {
 public:
  // How often the kernel refuses: probabilities in thousandths.
  struct Refusals {
    uint64_t install = 0, unmap = 0, free = 0, collect = 0, copy_out = 0;
  };

  explicit SimKernel(Fibers& scheduler) : fibers(scheduler) {}

  Fibers& fibers;
  Refusals refusals;
  // Called whenever memory was allocated.
  std::function<void(uint64_t resident_bytes)> on_memory;

  void map(const Mapping& mapping);
  void unmap(std::byte* address, uint64_t size_bytes);
  // Splits a mapping that contains the address into two, as a partial munmap does.
  void divide(std::byte* address);
  // Calls f(mapping) for every mapping that lies in the range.
  template <typename F>
  void for_each_mapping(const std::byte* address, uint64_t size_bytes, const F& f) {
    for (auto& [start, mapping] : mappings_)
      if (start >= address && mapping.end() <= address + size_bytes) f(mapping);
  }
  // The mapping of an address; nullptr if there is none.
  Mapping* find(const std::byte* address);
  // The entry of an address, which must be mapped with this owner.
  PageEntry& entry(const std::byte* address, const SimFrames* owner);
  // Calls f(mapping, entry) for every entry that shows this system page of the owner.
  template <typename F>
  void for_each_entry(const SimFrames* owner, uint64_t offset, const F& f) {
    for (auto& [address, mapping] : mappings_)
      if (mapping.owner == owner && offset >= mapping.offset &&
          offset < mapping.offset + mapping.size_bytes)
        f(mapping, mapping.entry[(offset - mapping.offset) / base::kSystemPage]);
  }

  // What a program does: returns the simulated bytes of the address, or nullptr if the touch
  // faults.
  std::byte* touch(std::byte* address, bool is_write);
  // What the kernel does to pinned memory: no fault, no trace.
  std::byte* touch_pinned(std::byte* address);

  uint64_t next_frames_id() { return frames_ids_++; }
  void memory_changed(int64_t bytes);
  uint64_t resident_bytes() const { return resident_bytes_; }

 private:
  std::map<const std::byte*, Mapping> mappings_;
  uint64_t resident_bytes_ = 0;
  uint64_t frames_ids_ = 0;
};

}  // namespace outcore::sim
