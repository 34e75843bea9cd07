// Pins: which pages of a buffer must stay because this member has them in hand. See puncher.h for
// the order that makes it sure. Any thread; the fault path.
#pragma once

#include <cstdint>

#include "core/buffer/member.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Pins {
 public:
  explicit Pins(Member& member) : member_(member) {}

  // The page stays from now on if it is in memory, or once it is. Waits for members that are just
  // punching. 0; -ENOMEM: this member has too many pages pinned in that place; -ETIMEDOUT: one of
  // those stands still. In both cases it is as if it had been dropped. REQUIRES: reserved.
  int add(uint64_t page);
  // Before: so many more are to come, of this member; others may have some, too, and half of the
  // limit is for those who pin nothing. False: too many. Each add() uses one up.
  bool reserve(uint64_t pages);
  void unreserve(uint64_t pages);  // that were reserved and not added
  // Pages of [first, end) that the member has pinned and `is_counted` says yes to.
  template <typename IsCounted>
  static uint64_t count(const MemberRecord& member, uint64_t first, uint64_t end,
                        const IsCounted& is_counted) {
    uint64_t pages = 0;
    for (const os::Word<uint64_t>& pin : member.pins)
      if (const uint64_t word = pin.load(); word != 0)
        if (const uint64_t page = (word >> 16) - 1; page >= first && page < end)
          pages += is_counted(page) ? 1 : 0;
    return pages;
  }
  void drop(uint64_t page);  // REQUIRES: it is pinned
  // Of these pages, whatever of them is pinned: their file goes.
  void drop_all(uint64_t first_page, uint64_t count);
  bool has(uint64_t page) const { return has(member_.record(), page); }

  // A glance at the pins of a member.
  static bool has(const MemberRecord& member, uint64_t page);

 private:
  static uint32_t first_of(uint64_t page) {
    const uint64_t mixed = page * 0x9E3779B97F4A7C15ull >> 32;
    return static_cast<uint32_t>(mixed % MemberRecord::kPinSets) * MemberRecord::kPinWays;
  }
  bool change(uint64_t page, bool is_more);
  Member& member_;
};

}  // namespace outcore::buffer
