// MappingCount: estimates how many kernel mappings the pages of one space need, where mprotect
// shows pages.
//
// The kernel keeps one mapping for each run of pages with the same protection, and limits their
// number for a process (vm.max_map_count); the program needs some of them, too. Runs are counted
// exactly within stretches of 32 system pages; each stretch with accessible pages counts as one
// more. The result is an upper bound and needs no lock. It counts by offsets, so it counts only one
// of several views.
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

  // Says that [offset, offset + size) has this protection now. Any thread; the fault path.
  void set(uint64_t offset, uint64_t size_bytes, Protection protection);

  uint64_t count() const { return whole(count_); }
  // The count of all spaces of the process.
  static uint64_t count_of_all() { return whole(in_process); }
  static void forget_in_child() { in_process.store(0); }  // a forked child inherits no region
  // The limit for all spaces: three quarters of the mappings that the process had left when this
  // was first called.
  static uint64_t limit();

 private:
  static uint64_t whole(const std::atomic<int64_t>& count) {
    return static_cast<uint64_t>(std::max<int64_t>(count.load(std::memory_order_relaxed), 0));
  }
  Table<std::atomic<uint64_t>> stretch_;  // two bits for each system page
  std::atomic<int64_t> count_{0};
  static std::atomic<int64_t> in_process;
};

}  // namespace outcore::os
