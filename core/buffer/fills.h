// Fills: which runs of pages of a buffer this member is reading from a file now. If the file is
// written, these pages must not leave meanwhile; see puncher.h. Any thread; the fault path.
#pragma once

#include <algorithm>

#include "core/buffer/member.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Fills {
 public:
  // Records a run for the length of a scope, which must begin before the page is looked up and
  // read. Waits for a free entry if more than kFills threads read.
  class Scope {
   public:
    Scope(Member& member, uint64_t first_page, uint64_t count) {
      const uint64_t run = PageReport::of(first_page, count, false).bits();
      std::array<os::Word<uint64_t>, MemberRecord::kFills>& fills = member.record().fills;
      for (uint64_t i = first_page;; ++i) {
        os::Word<uint64_t>& place = fills[i % fills.size()];
        uint64_t none = 0;
        if (place.load(std::memory_order_relaxed) == 0 &&
            place.compare_exchange_strong(none, run, std::memory_order_seq_cst)) {
          place_ = &place;
          return;
        }
        if ((i - first_page) % fills.size() == fills.size() - 1) os::yield();
      }
    }
    ~Scope() { place_->store(0, std::memory_order_seq_cst); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    os::Word<uint64_t>* place_ = nullptr;
  };

  static bool has(const MemberRecord& member, uint64_t page) {
    return std::any_of(member.fills.begin(), member.fills.end(),
                       [page](const os::Word<uint64_t>& place) {
                         const PageReport run(place.load(std::memory_order_seq_cst));
                         return run.bits() != 0 && page >= run.first_page() &&
                                page - run.first_page() < run.count();
                       });
  }

  // Waits until the fills of all members that are under way in [first_page, first_page + count)
  // have ended. False: one did not end within `wait_ns`. Not the fault path.
  static bool wait_for_all(const Member& member, uint64_t first_page, uint64_t count,
                           uint64_t wait_ns) {
    constexpr uint32_t kYieldsMax = 200;  // after that its process is stopped, or its disk is slow
    os::WaitLimit limit(wait_ns);
    const uint32_t end = member.board().members_end.load(std::memory_order_seq_cst);
    for (uint32_t i = 0; i < end; ++i)
      for (const os::Word<uint64_t>& place : member.board().members[i].fills) {
        const PageReport run(place.load(std::memory_order_seq_cst));
        const bool is_within = run.bits() != 0 && run.first_page() < first_page + count &&
                               first_page < run.first_page() + run.count();
        const auto is_under_way = [&] {
          return place.load(std::memory_order_seq_cst) == run.bits() && member.is_alive(i);
        };
        for (uint32_t looks = 0; is_within && is_under_way(); ++looks) {
          if (limit.is_over()) return false;
          if (looks < kYieldsMax)
            os::yield();
          else
            os::pause(200'000);
        }
      }
    return true;
  }
};

}  // namespace outcore::buffer
