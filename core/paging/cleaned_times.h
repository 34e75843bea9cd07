// CleanedTimes: when written pages became clean last, as far as that tells whether a write is over.
//
// A message of a write may be handled long after it was read from the kernel, where the machine is
// busy: others have let the page in meanwhile, it was written, stored, and has left, perhaps. To
// take it for written once more would store it again, after all was stored, and change the file's
// times. So a write that was heard of before its page became clean last is handled as a read: if
// its thread is still waiting, it asks again.
//
// Any thread; the fault path. Pages share places: a write that is late for another page asks again,
// too.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/os/wait.h"
#include "outcore/policy.h"

namespace outcore::paging {

class CleanedTimes {
 public:
  static constexpr uint64_t kNever = UINT64_MAX;  // later than all: whoever touches it asks itself

  // The page, which was written, is about to be clean; nobody can write it without a fault.
  void note(PageKey page) { place_of(page).store(os::now_ns(), std::memory_order_release); }
  // Whether a write that was heard of at this time (os::now_ns) may be over.
  bool is_late(PageKey page, uint64_t heard_ns) const {
    return place_of(page).load(std::memory_order_acquire) >= heard_ns;
  }

 private:
  static constexpr uint64_t kPlaces = 4096;
  std::atomic<uint64_t>& place_of(PageKey page) { return cleaned_ns_[page % kPlaces]; }
  const std::atomic<uint64_t>& place_of(PageKey page) const { return cleaned_ns_[page % kPlaces]; }

  std::array<std::atomic<uint64_t>, kPlaces> cleaned_ns_{};
};

}  // namespace outcore::paging
