#include "core/buffer/room.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/assert.h"
#include "core/buffer/victims.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"

namespace outcore::buffer {

namespace {

// The same in a thread, and another one in each thread of a process that runs at the same time.
uint64_t this_thread() { return reinterpret_cast<uint64_t>(__builtin_thread_pointer()); }

}  // namespace

uint64_t Room::free_pages_wanted(uint64_t limit_bytes) {
  return std::clamp<uint64_t>(limit_bytes / kPage / 128, 16, MemberRecord::kVictims);
}

void Room::ring() {
  Board& board = member_.board();
  board.bell.fetch_add(1, std::memory_order_seq_cst);
  if (board.is_bell_heard.load(std::memory_order_seq_cst) == 0)
    os::wake_between_processes(&board.bell);
}

size_t Room::take_out_victims(MemberRecord& of, size_t most) {
  uint64_t stay[Puncher::kVictimsAtOnce];
  size_t staying = 0;
  const size_t freed = puncher_.punch_victims(of, most, stay, &staying);
  OC_CHECK(staying <= most);
  for (size_t i = 0; i < staying; ++i) note_filled(stay[i], 1, false);
  return freed;
}

// What is left to a thread that may not come to it.
bool Room::take_out_victims_of_any() {
  Board& board = member_.board();
  const uint32_t end = board.members_end.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < end; ++i)
    if (take_out_victims(board.members[i], Puncher::kVictimsAtOnce) != 0) return true;
  return false;
}

// One page more leaves than comes in: so the ring is empty before the room is used up.
bool Room::try_acquire(uint64_t pages) {
  OC_CHECK(pages != 0);
  MemberRecord& own = member_.record();
  take_out_victims(own, std::min<uint64_t>(pages + 1, Puncher::kVictimsAtOnce));
  while (!try_reserve(pages))
    if (take_out_victims(own, Puncher::kVictimsAtOnce) == 0) return false;
  return true;
}

bool Room::try_reserve(uint64_t pages) {
  MemberRecord& own = member_.record();
  os::Word<uint64_t>& reserved = own.reserved_pages;
  reserved.fetch_add(pages, std::memory_order_seq_cst);
  const uint64_t limit = limit_bytes();
  uint64_t used = member_.occupancy().used_bytes_at_most();
  if (used + free_pages_wanted(limit) * kPage > limit) used = member_.occupancy().used_bytes();
  if (used > limit) lower(reserved, pages);
  // What this member is to take out itself counts as free, but to who finds no room.
  const uint64_t leaving = used > limit ? 0 : Victims::count(own) * kPage;
  if (used + free_pages_wanted(limit) * kPage > limit + leaving) ring();
  note_used(used);
  return used <= limit;
}

void Room::note_used(uint64_t used_bytes) {
  os::Word<uint64_t>& most = member_.board().used_bytes_max;
  uint64_t before = most.load(std::memory_order_relaxed);
  while (used_bytes > before && used_bytes <= limit_bytes() &&
         !most.compare_exchange_weak(before, used_bytes, std::memory_order_relaxed)) {
  }
}

int Room::acquire(uint64_t pages, uint64_t wait_ns, const Question& gives_up) {
  int result = -ENOMEM;
  const auto is_there = [&] {
    if (try_acquire(pages))
      result = 0;
    else if (gives_up.ask != nullptr && gives_up.ask(gives_up.of))
      result = -EAGAIN;
    return result != -ENOMEM;
  };
  static_cast<void>(wait_until(is_there, wait_ns));
  return result;
}

bool Room::wait_for_less(uint64_t used_bytes, uint64_t wait_ns) {
  OC_CHECK(used_bytes != 0);
  const auto is_less = [&] {
    if (member_.occupancy().used_bytes() <= used_bytes) return true;
    ring();
    return false;
  };
  return wait_until(is_less, wait_ns);
}

// Nobody can be asked to hurry: what the keeping process does not do is done here after a while.
template <typename IsThere>
bool Room::wait_until(const IsThere& is_there, uint64_t wait_ns) {
  // A keeping process that runs answers within milliseconds; one that died is replaced as fast.
  // Where one is stopped, waiting has been in vain for a while, and is not tried for long.
  constexpr uint64_t kPatienceNs = 100'000'000, kLittlePatienceNs = 2'000'000;
  constexpr uint64_t kSleepNs = 5'000'000, kImpatientNs = 1'000'000'000, kWorkingNs = 1'000'000'000;
  Board& board = member_.board();
  const uint64_t start_ns = os::now_ns();
  uint64_t helped_ns = start_ns;
  os::WaitLimit limit(wait_ns);
  uint32_t changes_before = board.room_changes.load(std::memory_order_seq_cst);
  for (;;) {
    const uint32_t changes = board.room_changes.load(std::memory_order_seq_cst);
    if (is_there()) return true;
    // The keeping process is at work, and others were faster to take what it has freed: but not for
    // ever.
    const bool is_patient = os::now_ns() - start_ns < kWorkingNs;
    if (changes != std::exchange(changes_before, changes) && is_patient) {
      helped_ns = os::now_ns();
      impatient_until_ns_.store(0, std::memory_order_relaxed);
    }
    const uint64_t now_ns = os::now_ns();
    if (limit.is_over() || !member_.has_frames()) return false;
    if (take_out_victims_of_any()) continue;
    const bool is_impatient = now_ns < impatient_until_ns_.load(std::memory_order_relaxed);
    if (now_ns - helped_ns > (is_impatient ? kLittlePatienceNs : kPatienceNs)) {
      helped_ns = now_ns;
      if (!is_impatient)
        impatient_until_ns_.store(now_ns + kImpatientNs, std::memory_order_relaxed);
      if (help(now_ns)) continue;
    }
    board.room_waiters.fetch_add(1, std::memory_order_seq_cst);
    if (board.room_changes.load(std::memory_order_seq_cst) == changes)
      os::wait_between_processes(&board.room_changes, changes,
                                 is_impatient ? kLittlePatienceNs : kSleepNs);
    board.room_waiters.fetch_sub(1);
  }
}

// What the dead had, and else pages as chance will have it.
bool Room::help(uint64_t chance) {
  {
    const Member::FilesLock lock(member_, Member::FilesLock::Patience::kNone);
    if (lock.is_held() && member_.clear_dead()) return true;
  }
  return puncher_.punch_any(chance) != 0;
}

void Room::note_unreported(uint64_t pages) {
  member_.board().filled_pages.fetch_add(pages, std::memory_order_seq_cst);
  member_.board().has_unreported_pages.store(1);
}

void Room::release(uint64_t pages) { lower(member_.record().reserved_pages, pages); }

void Room::report(uint64_t first_page, uint64_t count, bool is_guess) {
  MemberRecord& m = member_.record();
  m.filled_pages.fetch_add(count, std::memory_order_relaxed);
  member_.board().filled_pages.fetch_add(count, std::memory_order_seq_cst);
  if (const uint64_t thread = this_thread(); m.filling_thread.load() != thread) {
    m.filling_thread.store(thread);
    m.filling_threads.fetch_add(1);
  }
  note_filled(first_page, count, is_guess);
}

void Room::note_filled(uint64_t first_page, uint64_t count, bool is_guess) {
  MemberRecord& m = member_.record();
  const uint64_t at = m.reports_end.fetch_add(1, std::memory_order_seq_cst);
  const PageReport report = PageReport::of(first_page, count, is_guess);
  const uint64_t lost = m.reports[at % MemberRecord::kReports].exchange(report.bits());
  if (lost != 0) m.has_lost_reports.store(1);
  // Half full: the keeping process sleeps while there is room.
  if (at % (MemberRecord::kReports / 2) == 0) ring();
}

}  // namespace outcore::buffer
