// Victims: pages that are to leave a buffer, left to the one thread that is bringing pages in, if
// no other one does. To take a page out interrupts each other processor that runs a process which
// has the page mapped, and waits for its answer; where the keeping process does that, it costs the
// one thread that works twice what its own fill takes. That thread takes them out for less than a
// fifth, as it interrupts nobody: a few before each wish for room.
//
// A ring in the member's record. What stands there is as right if it is lost: those pages are in
// memory still, and the keeping process finds them there (Keeping::look_at_memory). So anybody may
// take them out. The fault path; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/assert.h"
#include "core/buffer/board.h"

namespace outcore::buffer {

class Victims {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  // One thread, in the keeping process. False: the member has too many already. `*lost`: a page
  // that somebody took a whole ring ago, and has not come to yet, or died over; or kNone.
  static bool give(MemberRecord& to, uint64_t page, uint64_t* lost) {
    OC_CHECK(page != kNone);
    *lost = kNone;
    const uint64_t at = to.victims_end.load(std::memory_order_relaxed);
    if (count(to) >= MemberRecord::kVictims) return false;
    *lost = to.victims[at % MemberRecord::kVictims].exchange(page + 1) - 1;
    to.victims_end.store(at + 1, std::memory_order_seq_cst);
    return true;
  }

  // The oldest; kNone: there is none.
  static uint64_t take(MemberRecord& from) {
    uint64_t at = from.victims_begin.load(std::memory_order_seq_cst);
    while (at < from.victims_end.load(std::memory_order_seq_cst)) {
      if (!from.victims_begin.compare_exchange_weak(at, at + 1)) continue;
      const uint64_t taken = from.victims[at % MemberRecord::kVictims].exchange(0);
      if (taken != 0) return taken - 1;
      ++at;
    }
    return kNone;
  }

  static uint64_t count(const MemberRecord& of) {
    const uint64_t begin = of.victims_begin.load(std::memory_order_seq_cst);
    return std::max(of.victims_end.load(std::memory_order_seq_cst), begin) - begin;
  }
};

}  // namespace outcore::buffer
