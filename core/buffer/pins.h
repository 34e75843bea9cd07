// Pins: which pages of a buffer must stay in memory because this member uses them. See puncher.h
// for the order that ensures it. Any thread; the fault path.
#pragma once

#include <cstdint>

#include "core/buffer/member.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Pins {
 public:
  explicit Pins(Member& member) : member_(member) {}

  // From now on the page stays in memory, if it is there or as soon as it is. Waits for members
  // that are punching it. 0; -ENOMEM: this member has too many pins in the page's hash set;
  // -ETIMEDOUT: a punching member is stopped. After an error the page is not pinned, and its
  // reservation is gone. REQUIRES: reserve()d.
  int add(uint64_t page);
  // Call before add(): reserves `pages` pins for this member; each add() uses one up. All members
  // together may pin half of the limit. False: that would be exceeded, and nothing is reserved.
  bool reserve(uint64_t pages);
  void unreserve(uint64_t pages);  // REQUIRES: reserved, and not used by add()
  // How many pages of [first, end) the member has pinned for which is_counted(page) is true.
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
  // Drops every pin of these pages: their file is leaving the buffer.
  void drop_all(uint64_t first_page, uint64_t count);
  bool has(uint64_t page) const { return has(member_.record(), page); }

  // Whether that member has pinned the page; may be out of date when it returns.
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
