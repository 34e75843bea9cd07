// Room: pages of a buffer's memory for those who bring some in, within the limit of all members.
//
// The limit holds at every moment, whoever dies: who wants pages writes how many into its own
// record, and then adds up all records and what the kernel says is in memory; is that too much, it
// takes its wish back. While a page is being brought in it counts twice. What a dead member wished
// for counts until the keeping process has noticed. Any thread; the fault path.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/buffer/member.h"
#include "core/buffer/puncher.h"
#include "core/os/word.h"

namespace outcore::buffer {

class Room {
 public:
  Room(Member& member, Puncher& puncher) : member_(member), puncher_(puncher) {}

  // Does not wait. Takes out what was left to this member to take out (Victims): each time a page
  // more than it asks for, and all if there is no room else.
  bool try_acquire(uint64_t pages);
  // Takes out what was left to others, too, and waits for the keeping process, at most `wait_ns`;
  // if that does nothing for long, pages leave as chance will have it. 0 or -ENOMEM.
  // It gives up with -EAGAIN if `gives_up` says so.
  struct Question {
    bool (*ask)(const void* of);
    const void* of;
  };
  int acquire(uint64_t pages, uint64_t wait_ns, const Question& gives_up);
  int acquire(uint64_t pages, uint64_t wait_ns) {
    return acquire(pages, wait_ns, Question{nullptr, nullptr});
  }
  void release(uint64_t pages);
  // So many pages at most came in that are not reported one by one: before release().
  void note_unreported(uint64_t pages);
  // Waits in the same way until no more than this is used of the limit. Not the fault path.
  bool wait_for_less(uint64_t used_bytes, uint64_t wait_ns);

  // Reports to the keeping process the pages that have come in.
  void report(uint64_t first_page, uint64_t count, bool is_guess);

  uint64_t limit_bytes() const { return member_.board().limit_bytes.load(); }
  // So many pages should be free: if there are fewer, the keeping process makes room.
  static uint64_t free_pages_wanted(uint64_t limit_bytes);

  void note_used(uint64_t used_bytes);  // for the most that was ever in use
  void ring();                          // pages may leave by now: wakes the keeping process

 private:
  template <typename IsThere>
  bool wait_until(const IsThere& is_there, uint64_t wait_ns);
  bool help(uint64_t chance);
  bool try_reserve(uint64_t pages);
  size_t take_out_victims(MemberRecord& of, size_t most);
  bool take_out_victims_of_any();
  void tell(uint64_t first_page, uint64_t count, bool is_guess);
  Member& member_;
  Puncher& puncher_;
  os::Word<uint64_t> impatient_until_ns_{0};
};

}  // namespace outcore::buffer
