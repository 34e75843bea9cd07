// Puncher: takes pages out of a buffer's memory, for all processes at once.
//
// Whoever maps such a page faults at its next touch, and whoever needs it reads it again: so any
// member may do this at any moment, and may die in the middle of it. Only pinned pages must stay.
// The order makes that sure (Dekker's): who pins writes the pin first, and then looks for members
// that are punching and waits for those; who punches says so first, and then looks for pins. It
// does so for a few pages at a time, and says between which: nobody waits for others' pages, or for
// long.
//
// So do marks of written pages (marks.h). And of a file that is written no page leaves that
// somebody is just reading from the file: what he has read may be older than what was stored since,
// and he would bring it in where there is nothing any more. Who punches looks for the mark first,
// and for such readers then: whoever begins to read after that reads what is stored.
//
// The fault path; any thread, one at a time.
#pragma once

#include <cstdint>
#include <span>

#include "core/buffer/marks.h"
#include "core/buffer/member.h"

namespace outcore::buffer {

class Puncher {
 public:
  static constexpr size_t kPagesMax = 512;

  explicit Puncher(Member& member) : member_(member), glances_(member) {}
  // Frees those of the pages that nobody has pinned, and sets is_freed for each. `pages` is sorted.
  // Returns how many. Waits for another thread of this process that is at it, 10 ms at most: then
  // 0. REQUIRES: as many as kPagesMax at most.
  size_t punch(std::span<const uint64_t> pages, std::span<bool> is_freed);
  // Frees what lies in the range, for a filler that waits in vain for the keeping process: a few
  // pages anywhere in the memory, as chance will have it. Returns how many.
  size_t punch_any(uint64_t chance);
  // Frees some of the pages that the member has among its Victims. Those that must stay are put
  // into `stay`, `*staying` of them. Returns how many were freed. Does not wait.
  static constexpr size_t kVictimsAtOnce = 8;
  size_t punch_victims(MemberRecord& of, size_t most, std::span<uint64_t, kVictimsAtOnce> stay,
                       size_t* staying);
  // Frees the marks of 512 pages, if none of them is marked. False: some are, or another thread of
  // this process is punching.
  bool punch_marks(uint64_t first_page);
  // Whether the page stays for nothing but that it is written.
  bool waits_for_store(uint64_t page, Marks::Glances& glances) const;
  // A file that nobody has any more: all of its pages and marks, pinned or not.
  void punch_range(uint64_t first_page, uint64_t count);

 private:
  bool is_in_hand(uint64_t page) const;
  bool must_stay(uint64_t page, bool is_alone);
  size_t punch_together(std::span<const uint64_t> pages, std::span<bool> is_freed);
  Member& member_;
  std::atomic<bool> is_busy_{false};
  Marks::Glances glances_;  // whose turn it is; not on a small signal stack
};

}  // namespace outcore::buffer
