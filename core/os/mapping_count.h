// MappingCount: how many mappings of the process the pages of one space take where mprotect shows
// them.
//
// The kernel keeps one mapping for each run of pages with one protection, and gives a process a
// bounded number (vm.max_map_count), which the program needs, too. Runs are counted exactly within
// stretches of 32 system pages, and each stretch that shows something as one more: an upper bound,
// without a lock. It goes by offsets: of several views it counts one.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "core/os/address_space.h"
#include "outcore/result.h"

namespace outcore::os {

class MappingCount {
 public:
  enum class Protection : uint8_t { kNone, kRead, kWrite };

  MappingCount() = default;
  MappingCount(const MappingCount&) = delete;
  MappingCount& operator=(const MappingCount&) = delete;
  ~MappingCount();
  // REQUIRES: called once, before use.
  Status allocate(uint64_t size_bytes);

  // The protection of [offset, offset + size) is this now. Any thread, the fault path.
  void set(uint64_t offset, uint64_t size_bytes, Protection protection);

  uint64_t count() const { return whole(count_); }
  // Of all spaces of the process.
  static uint64_t count_of_all() { return whole(in_process); }
  static void forget_in_child() { in_process.store(0); }  // which inherits no region
  // What all spaces may take: three quarters of those that the process had left when first asked.
  static uint64_t limit();

 private:
  static uint64_t whole(const std::atomic<int64_t>& count) {
    return static_cast<uint64_t>(std::max<int64_t>(count.load(std::memory_order_relaxed), 0));
  }
  Table<std::atomic<uint64_t>> stretch_;  // two bits a system page
  std::atomic<int64_t> count_{0};
  static std::atomic<int64_t> in_process;
};

}  // namespace outcore::os
