// Room: pages of a buffer's memory for those who bring some in, within the limit of all members.
//
// The limit holds at every moment, whichever member dies: a member that wants pages first writes
// the reservation into its own record, and then adds up all records and what the kernel says is in
// memory; if the sum exceeds the limit, it withdraws its reservation. While a page is being brought
// in it counts twice. A dead member's reservation counts until the keeping process notices the
// death. Any thread; the fault path.
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

  // Does not wait. Evicts victims that were assigned to this member (Victims): one more than the
  // pages asked for, and as many as it takes if there is no room otherwise.
  bool try_acquire(uint64_t pages);
  // As try_acquire(), but evicts victims of other members as well, and waits at most `wait_ns` for
  // the keeping process; if that makes no room for 100 ms, random pages are evicted. 0; -ENOMEM:
  // there was no room in time; -EAGAIN: `gives_up` said so.
  struct Question {
    bool (*ask)(const void* of);
    const void* of;
  };
  int acquire(uint64_t pages, uint64_t wait_ns, const Question& gives_up);
  int acquire(uint64_t pages, uint64_t wait_ns) {
    return acquire(pages, wait_ns, Question{nullptr, nullptr});
  }
  void release(uint64_t pages);
  // At most `pages` pages came in that will not be reported one by one. Called before release().
  void note_unreported(uint64_t pages);
  // Waits as acquire() does until at most `used_bytes` of the limit are used. Not the fault path.
  bool wait_for_less(uint64_t used_bytes, uint64_t wait_ns);

  // Reports to the keeping process the pages that have come in.
  void report(uint64_t first_page, uint64_t count, bool is_guess);

  uint64_t limit_bytes() const { return member_.board().limit_bytes.load(); }
  // How many pages should be free: if there are fewer, the keeping process makes room.
  static uint64_t free_pages_wanted(uint64_t limit_bytes);

  void note_used(uint64_t used_bytes);  // for Board::used_bytes_max
  void ring();                          // wakes the keeping process

 private:
  template <typename IsThere>
  bool wait_until(const IsThere& is_there, uint64_t wait_ns);
  bool help(uint64_t chance);
  bool try_reserve(uint64_t pages);
  size_t take_out_victims(MemberRecord& of, size_t most);
  bool take_out_victims_of_any();
  void note_filled(uint64_t first_page, uint64_t count, bool is_guess);
  Member& member_;
  Puncher& puncher_;
  os::Word<uint64_t> impatient_until_ns_{0};
};

}  // namespace outcore::buffer
