// Victims: pages that are to leave a buffer, and that the keeping process leaves to the thread that
// brings pages in, while there is only one such thread. Punching a page interrupts each other
// processor that runs a process which has the page mapped, and waits for its answer. If the keeping
// process did it, the one working thread would lose twice the time of its own fill; that thread
// itself needs less than a fifth, as it interrupts nobody. It punches a few before each request for
// room.
//
// A ring in the member's record. Entries may be lost: their pages are still in memory, and the
// keeping process finds them there (Keeping::look_at_memory). So any member may punch them. The
// fault path; any thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/base/assert.h"
#include "core/buffer/board.h"

namespace outcore::buffer {

class Victims {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};

  // One thread, in the keeping process. False: the member has too many already. `*lost`: the page
  // that was in this entry a ring ago, if its taker has not reached it, or died before; else kNone.
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
