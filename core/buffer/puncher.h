// Puncher: takes pages out of a buffer's memory, for all processes at once.
//
// A process that maps such a page faults at its next touch, and reads the page again. So any member
// may do this at any moment, and may die in the middle of it. Only pinned pages must stay. The
// order ensures that (as in Dekker's algorithm): a member that pins writes the pin first, and then
// waits for members that are punching; a member that punches announces it first, and then looks for
// pins. It announces a few pages at a time, so a pin waits for punchers of its own page only, and
// not for long.
//
// Marked pages (marks.h) must stay, too. So must a page of a written file while a process reads it
// from the file: that process may hold older bytes than were stored since, and would install them
// in the hole. The puncher checks the mark first, then such readers; a reader that starts later
// reads the stored bytes.
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
  // Frees those of the pages that may leave, and sets is_freed for each. `pages` is sorted. Returns
  // how many were freed. If another thread of this process is punching it waits 10 ms at most, and
  // then frees none. REQUIRES: at most kPagesMax pages.
  size_t punch(std::span<const uint64_t> pages, std::span<bool> is_freed);
  // Frees at most 64 pages from a random place on, for a filler that waits in vain for the keeping
  // process. `chance`: any number, by which the place is chosen. Returns how many were freed.
  size_t punch_any(uint64_t chance);
  // Frees pages of the member's Victims, at most `most` of them. Those that must stay are put into
  // `stay`; `*staying` is their count. Returns how many were freed. Does not wait.
  static constexpr size_t kVictimsAtOnce = 8;
  size_t punch_victims(MemberRecord& of, size_t most, std::span<uint64_t, kVictimsAtOnce> stay,
                       size_t* staying);
  // Frees the marks of 512 pages, if none of them is marked. False: some are, or another thread of
  // this process is punching.
  bool punch_marks(uint64_t first_page);
  // Whether the page must stay only because it is marked: it may leave once it is stored.
  bool waits_for_store(uint64_t page, Marks::Glances& glances) const;
  // Frees all pages and marks of a file that no member has any more, pinned or not.
  void punch_range(uint64_t first_page, uint64_t count);

 private:
  bool is_in_hand(uint64_t page) const;
  bool must_stay(uint64_t page, bool is_alone);
  size_t punch_together(std::span<const uint64_t> pages, std::span<bool> is_freed);
  Member& member_;
  std::atomic<bool> is_busy_{false};
  Marks::Glances glances_;  // used while is_busy_; too large for a small signal stack
};

}  // namespace outcore::buffer
