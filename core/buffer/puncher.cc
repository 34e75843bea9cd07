#include "core/buffer/puncher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/assert.h"
#include "core/buffer/fills.h"
#include "core/buffer/pins.h"
#include "core/buffer/victims.h"
#include "core/os/file_calls.h"
#include "core/os/wait.h"

namespace outcore::buffer {
namespace {

// Who needs one of the pages waits for as many holes, each of some microseconds. Threads of one
// process alone wait for all: each hole interrupts those that run, and costs twice as much then.
constexpr size_t kHolesTogether = 16;

// Says that this member punches pages of [first, end), for the length of a scope.
class Punching {
 public:
  Punching(const Member& member, uint64_t first, uint64_t end)
      : board_(member.board()), record_(member.record()) {
    OC_CHECK(first < end);
    record_.punched_first.store(first, std::memory_order_seq_cst);
    record_.punched_end.store(end, std::memory_order_seq_cst);
    record_.punching.store((record_.punching.load() + 1) | 1, std::memory_order_seq_cst);
  }
  // Even, also if others took this member for dead meanwhile (its descriptors are closed), and have
  // cleared its record.
  ~Punching() {
    record_.punching.store((record_.punching.load() + 2) & ~1u, std::memory_order_seq_cst);
    if (board_.punch_waiters.load(std::memory_order_seq_cst) != 0)
      os::wake_between_processes(&record_.punching);
  }
  Punching(const Punching&) = delete;
  Punching& operator=(const Punching&) = delete;

 private:
  const Board& board_;
  MemberRecord& record_;
};

// One thread of this process at a time. The others wait, but not for ever (or not at all): it may
// have been interrupted by a handler of the program.
class Turn {
 public:
  enum class Patience : uint8_t { kSome, kNone };
  explicit Turn(std::atomic<bool>& is_busy, Patience patience = Patience::kSome)
      : is_busy_(is_busy), is_ours_(!is_busy.exchange(true)) {
    constexpr uint64_t kNsMax = 10'000'000;
    if (is_ours_ || patience == Patience::kNone) return;
    const uint64_t start_ns = os::now_ns();
    while (!(is_ours_ = !is_busy.exchange(true)) && os::now_ns() - start_ns < kNsMax) os::yield();
  }
  ~Turn() {
    if (is_ours_) is_busy_.store(false);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool is_ours() const { return is_ours_; }

 private:
  std::atomic<bool>& is_busy_;
  bool is_ours_ = false;
};

}  // namespace

bool Puncher::must_stay(uint64_t page, bool is_alone) {
  const bool is_any_written = member_.board().written_files.load(std::memory_order_seq_cst) != 0;
  const auto word = [&] { return is_alone ? Marks::glance(member_, page) : glances_.word(page); };
  return (is_any_written && word() != 0) || is_in_hand(page);
}

bool Puncher::waits_for_store(uint64_t page, Marks::Glances& glances) const {
  return glances.word(page) != 0 && !is_in_hand(page);
}

// Pinned, or just being read beside those who write.
bool Puncher::is_in_hand(uint64_t page) const {
  const Board& board = member_.board();
  const bool is_any_written = board.written_files.load(std::memory_order_seq_cst) != 0;
  const uint32_t end = board.members_end.load(std::memory_order_seq_cst);
  for (uint32_t i = 0; i < end; ++i) {
    const MemberRecord& m = board.members[i];
    if ((Pins::has(m, page) || (is_any_written && Fills::has(m, page))) && member_.is_alive(i))
      return true;
  }
  return false;
}

size_t Puncher::punch(std::span<const uint64_t> pages, std::span<bool> is_freed) {
  OC_CHECK(pages.size() <= kPagesMax && is_freed.size() >= pages.size());
  OC_ASSERT(std::is_sorted(pages.begin(), pages.end()));
  std::fill_n(is_freed.begin(), pages.size(), false);
  const Turn turn(is_busy_);
  if (!member_.has_frames() || !turn.is_ours()) return 0;
  const bool is_alone = member_.board().never_had_company();
  const size_t together = is_alone ? kPagesMax : kHolesTogether;
  size_t freed = 0;
  for (size_t begin = 0; begin < pages.size();) {
    size_t end = begin + 1, holes = 1;
    for (; end < pages.size(); ++end)
      if (pages[end] != pages[end - 1] + 1 && ++holes > together) break;
    freed +=
        punch_together(pages.subspan(begin, end - begin), is_freed.subspan(begin, end - begin));
    begin = end;
  }
  OC_CHECK(freed <= pages.size());
  member_.record().evicted_pages.fetch_add(freed, std::memory_order_relaxed);
  return freed;
}

size_t Puncher::punch_together(std::span<const uint64_t> pages, std::span<bool> is_freed) {
  OC_CHECK(!pages.empty());
  const Punching punching(member_, pages.front(), pages.back() + 1);
  glances_.forget();  // all have heard just now that these may go
  for (size_t i = 0; i < pages.size(); ++i) is_freed[i] = !must_stay(pages[i], pages.size() == 1);
  size_t freed = 0;
  for (size_t begin = 0; begin < pages.size();) {
    size_t end = begin + 1;
    while (end < pages.size() && pages[end] == pages[end - 1] + 1 &&
           is_freed[end] == is_freed[begin])
      ++end;
    if (is_freed[begin]) {
      const int error =
          os::punch_hole(member_.frames_fd(), pages[begin] * kPage, (end - begin) * kPage);
      if (error != 0)
        for (size_t i = begin; i < end; ++i) is_freed[i] = false;
      else
        freed += end - begin;
    }
    begin = end;
  }
  return freed;
}

size_t Puncher::punch_victims(MemberRecord& of, size_t most,
                              std::span<uint64_t, kVictimsAtOnce> stay, size_t* staying) {
  OC_CHECK(most != 0 && most <= kVictimsAtOnce);
  *staying = 0;
  if (Victims::count(of) == 0) return 0;
  const Turn turn(is_busy_, Turn::Patience::kNone);
  if (!turn.is_ours() || !member_.has_frames()) return 0;
  size_t freed = 0;
  // One by one: who is stopped here keeps others from that page, and from no other.
  for (uint64_t page; freed + *staying < most && (page = Victims::take(of)) != Victims::kNone;) {
    bool is_freed = false;
    freed += punch_together({&page, 1}, {&is_freed, 1});
    if (!is_freed) stay[(*staying)++] = page;
  }
  OC_CHECK(freed + *staying <= most);
  member_.record().evicted_pages.fetch_add(freed, std::memory_order_relaxed);
  return freed;
}

size_t Puncher::punch_any(uint64_t chance) {
  constexpr size_t kAtOnce = 64;
  const uint64_t end = member_.board().next_page.load();
  uint64_t pages[kAtOnce];
  bool is_freed[kAtOnce];
  size_t count = 0;
  off_t at = end == 0 ? 0 : static_cast<off_t>(chance % end * kPage);
  for (int rounds = 0; count < kAtOnce && rounds < 2;) {
    at = ::lseek(member_.frames_fd(), at, SEEK_DATA);
    if (at < 0 || static_cast<uint64_t>(at) >= end * kPage) {
      ++rounds;
      at = 0;
      continue;
    }
    const uint64_t page = static_cast<uint64_t>(at) / kPage;
    if (std::find(pages, pages + count, page) != pages + count) break;
    pages[count++] = page;
    at += static_cast<off_t>(kPage);
  }
  std::sort(pages, pages + count);
  return punch({pages, count}, is_freed);
}

void Puncher::punch_range(uint64_t first_page, uint64_t count) {
  OC_CHECK(count != 0);
  if (!member_.has_frames()) return;
  static_cast<void>(os::punch_hole(member_.frames_fd(), first_page * kPage, count * kPage));
  const uint64_t first = first_page / Marks::kGroup, end = (first_page + count - 1) / Marks::kGroup;
  static_cast<void>(os::punch_hole(member_.marks_fd(), first * kPage, (end - first + 1) * kPage));
}

// Who marks a page in it meanwhile waits, and then finds its mark gone.
bool Puncher::punch_marks(uint64_t first_page) {
  OC_CHECK(first_page % Marks::kGroup == 0);
  const Turn turn(is_busy_);
  if (!turn.is_ours()) return false;
  const Punching punching(member_, first_page, first_page + Marks::kGroup);
  if (Marks::is_any_in_group(member_, first_page)) return false;
  return os::punch_hole(member_.marks_fd(), first_page / Marks::kGroup * kPage, kPage) == 0;
}

}  // namespace outcore::buffer
