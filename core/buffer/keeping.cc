#include "core/buffer/keeping.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/buffer/heirs.h"
#include "core/buffer/leaving_pages.h"
#include "core/buffer/marks.h"
#include "core/buffer/room.h"
#include "core/buffer/victims.h"
#include "core/os/wait.h"

namespace outcore::buffer {

Status Keeping::start() {
  try {
    const os::SignalBlock block;  // inherited: no signal of the program runs on our thread
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& e) {
    return base::system_error(e.code().value(), "start the thread that keeps a buffer",
                              "raise ulimit -u");
  }
  return {};
}

Keeping::~Keeping() {
  if (!thread_.joinable()) return;
  tell_to_end();
  thread_.join();
}

void Keeping::tell_to_end() {
  is_ending_.store(1);
  os::wake_all(&is_ending_);
  member_.board().bell.fetch_add(1);
  os::wake_between_processes(&member_.board().bell);
}

void Keeping::run() {
  // Nobody tells that a process has ended: so this is asked every so often, and not by a wait that
  // nothing can end. Who needs a page meanwhile makes room for it itself (Room::acquire).
  while (!member_.try_to_keep() || !begin().ok()) {
    member_.stop_keeping();  // without memory for it, perhaps another has some
    os::wait(&is_ending_, 0, kPeriodNs);
    if (is_ending_.load() != 0) return;
  }
  Board& board = member_.board();
  while (is_ending_.load() == 0) {
    board.is_bell_heard.store(1, std::memory_order_seq_cst);
    const uint32_t heard = board.bell.load(std::memory_order_seq_cst);
    step();
    board.is_bell_heard.store(0, std::memory_order_seq_cst);
    if (board.bell.load(std::memory_order_seq_cst) == heard)
      os::wait_between_processes(&board.bell, heard, kPeriodNs);
  }
}

Status Keeping::begin() {
  Board& board = member_.board();
  if (Status s = ledger_.open(board); !s) return s;
  board.keeping_member.store(member_.index() + 1);
  board.takeovers.fetch_add(1);
  for (uint32_t i = 0; i < kMembersMax; ++i) reports_read_[i] = board.members[i].reports_end.load();
  look_at_memory();
  return {};
}

void Keeping::step() {
  const uint64_t now_ns = os::now_ns();
  drain_reports();
  if (has_missed_some_ && now_ns - looked_at_memory_ns_ >= kLookNs) look_at_memory();
  if (now_ns - looked_after_ns_ >= kPeriodNs) {
    looked_after_ns_ = now_ns;
    look_after_members();
    forget_files();
  }
  make_room();
}

// Members that have ended. Who has the lock may be stopped: then at another time.
void Keeping::look_after_members() {
  Board& board = member_.board();
  bool has_one_ended = false;
  {
    const Member::FilesLock lock(member_, Member::FilesLock::Patience::kNone);
    has_one_ended = lock.is_held() && member_.clear_dead();
  }
  if (board.has_unreported_pages.exchange(0) != 0) has_missed_some_ = true;
  if (has_one_ended) wake_room_waiters();
}

void Keeping::wake_room_waiters() {
  Board& board = member_.board();
  board.room_changes.fetch_add(1, std::memory_order_seq_cst);
  if (board.room_waiters.load(std::memory_order_seq_cst) != 0)
    os::wake_between_processes(&board.room_changes);
}

// Files that nobody has mapped any more.
void Keeping::forget_files() {
  Board& board = member_.board();
  for (uint32_t i = 0; i < kFilesMax; ++i) {
    FileRecord& file = board.files[i];
    const auto is_without_members = [&] {
      return !file.has_members() &&
             (file.is_written.load() == 0 || !Heirs::has_living(member_, file));
    };
    if (file.state.load() == FileState::kFree || !is_without_members()) continue;
    // Without the lock: it may take long. Nobody is left who could mark any.
    const uint64_t marked =
        file.is_written.load() == 0 ? 0 : Marks::count_in(member_, file.first_page, file.pages);
    {
      const Member::FilesLock lock(member_, Member::FilesLock::Patience::kNone);
      if (!lock.is_held()) return;
      if (file.state.load() == FileState::kFree || !is_without_members()) continue;
      file.state.store(FileState::kClosed);  // nobody joins: it is ours alone
      // Nobody is left who could store what is marked, and nobody begins to (Heir).
      if (file.is_written.exchange(0) != 0) {
        board.written_files.fetch_sub(1);
        lower(board.written_pages, marked);
      }
      for (os::Word<uint64_t>& writer : file.writers) writer.store(0);
      for (os::Word<uint64_t>& heirs : file.heirs) heirs.store(0);
    }
    std::erase_if(asked_, [&](const Asked& asked) {
      const uint64_t page = ledger_.page_of(asked.frame);
      return page >= file.first_page && page - file.first_page < file.pages;
    });
    ledger_.forget_file(i);
    puncher_.punch_range(file.first_page, file.pages);
    file.state.store(FileState::kFree);
  }
}

void Keeping::drain_reports() {
  Board& board = member_.board();
  for (uint32_t i = 0; i < board.members_end.load(); ++i) {
    MemberRecord& m = board.members[i];
    const uint64_t end = m.reports_end.load(std::memory_order_seq_cst);
    uint64_t& read = reports_read_[i];
    if (m.has_lost_reports.exchange(0) != 0 || end - read > MemberRecord::kReports) {
      has_missed_some_ = true;
      read = end - std::min<uint64_t>(end, MemberRecord::kReports);
    }
    for (; read < end; ++read) {
      const PageReport report(m.reports[read % MemberRecord::kReports].exchange(0));
      if (report.bits() == 0 && must_wait_for_report(i, end - read)) break;
      gap_since_ns_[i] = 0;
      if (report.bits() != 0) ledger_.admit(board, report);
    }
  }
}

// The next report is being written just now, by a thread that the kernel has stopped for a moment,
// or that was killed there.
bool Keeping::must_wait_for_report(uint32_t member, uint64_t waiting) {
  OC_CHECK(member < kMembersMax);
  if (waiting >= MemberRecord::kReports / 2) return false;
  const uint64_t now_ns = os::now_ns();
  uint64_t& since_ns = gap_since_ns_[member];
  if (since_ns == 0) since_ns = now_ns;
  return now_ns - since_ns < kPeriodNs;
}

// What is in memory and was not reported. What was reported and is not there any more leaves when
// the policy chooses it.
void Keeping::look_at_memory() {
  constexpr uint32_t kStretches =
      256;  // between two times to drain reports, or they would be too many
  looked_at_memory_ns_ = os::now_ns();
  has_missed_some_ = false;
  uint32_t stretches = 0;
  const auto end = static_cast<off_t>(member_.board().next_page.load() * kPage);
  for (off_t at = 0; at < end;) {
    const off_t from = ::lseek(member_.frames_fd(), at, SEEK_DATA);
    if (from < 0 || from >= end) return;
    at = ::lseek(member_.frames_fd(), from, SEEK_HOLE);
    if (at < 0) return;
    const auto last = static_cast<uint64_t>(at) / kPage;
    for (uint64_t page = static_cast<uint64_t>(from) / kPage; page < last;) {
      const uint64_t count = std::min(last - page, PageReport::kCountMax);
      ledger_.admit(member_.board(), PageReport::of(page, count, false));
      page += count;
    }
    if (++stretches % kStretches == 0) drain_reports();
  }
}

// While there is less than should be free.
void Keeping::make_room() {
  Board& board = member_.board();
  for (bool is_first = true;; is_first = false) {
    const uint64_t limit = board.limit_bytes.load(), used = member_.occupancy().used_bytes();
    const uint64_t frames_bytes = member_.occupancy().pages_in_memory() * kPage;
    const uint64_t others = used - std::min(used, frames_bytes);
    ledger_.set_capacity(limit - std::min(limit, others));
    const uint64_t wanted = Room::free_pages_wanted(limit) * kPage;
    if (used + wanted <= limit) return;
    if (is_first) look_who_fills();
    uint64_t most = (used + 2 * wanted - limit) / kPage;
    if (reclaim_victims(most) != 0) {
      wake_room_waiters();
      continue;
    }
    const uint64_t left = lone_ == nullptr ? 0 : Victims::count(*lone_);
    if (used + wanted <= limit + left * kPage) return;
    most -= std::min(most, left);
    if (evict(most) != 0) {
      wake_room_waiters();
      drain_reports();
      continue;
    }
    if (used <= limit || os::now_ns() - looked_at_memory_ns_ < kPeriodNs) return;
    look_at_memory();
  }
}

// Those who wrote what was announced store it, and ring then.
void Keeping::ask_writers() {
  Board& board = member_.board();
  board.store_requests.fetch_add(1, std::memory_order_seq_cst);
  os::wake_between_processes(&board.store_requests);
}

// Returns how many pages have left, or were left to who fills. Those that are written are stored
// first, by who wrote them, who rings then.
size_t Keeping::evict(size_t most) {
  OC_CHECK(most != 0);
  if (!member_.has_frames()) return 0;
  const size_t freed_asked = evict_asked(most);
  if (freed_asked >= most) return freed_asked;
  // What is being stored leaves soon, if those who store it run: half of it is to be had elsewhere.
  most -= freed_asked;
  most = std::min(most - std::min(most / 2, asked_.size()), Puncher::kPagesMax);
  FrameId victims[Puncher::kPagesMax];
  bool is_freed[Puncher::kPagesMax];
  const size_t found = ledger_.choose_victims({victims, most});
  OC_CHECK(found <= most);
  const size_t left = leave_to_filler({victims, found});
  const std::span<FrameId> chosen(victims + left, found - left);
  const size_t count = chosen.size();
  const size_t freed = punch(chosen, is_freed);
  Board& board = member_.board();
  // A few that stay do no harm, and are not worth waking everybody. Who has always been alone
  // stores enough ahead, many pages at once: each of its own takes the other processors' time, too.
  const bool is_alone = board.never_had_company();
  const bool is_to_ask = 2 * (left + freed) < found && is_any_written();
  size_t announced = 0;
  const uint64_t now_ns = os::now_ns();
  Marks::Glances glances(member_);
  for (size_t i = 0; i < count; ++i) {
    if (is_freed[i]) continue;
    const uint64_t page = ledger_.page_of(chosen[i]);
    const bool is_announced = is_to_ask && puncher_.waits_for_store(page, glances);
    announced += is_announced ? 1 : 0;
    if (is_announced && !is_alone && asked_.size() < kAskedMax) {
      LeavingPages::announce(board, page);
      asked_.push_back({chosen[i], now_ns});
    } else {
      ledger_.put_back(chosen[i]);
    }
  }
  if (announced != 0) ask_writers();
  return left + freed + freed_asked;
}

// Of those that others were asked to store: what they have stored leaves; what they had the time to
// store, and is written still, or again, stays.
size_t Keeping::evict_asked(size_t most) {
  const uint64_t now_ns = os::now_ns();
  Marks::Glances glances(member_);
  size_t freed = 0;
  for (size_t left = asked_.size(); left != 0 && freed < most;) {
    FrameId frames[Puncher::kPagesMax];
    bool is_freed[Puncher::kPagesMax];
    size_t count = 0;
    for (; left != 0 && count < Puncher::kPagesMax; --left) {
      const Asked asked = asked_.front();
      asked_.pop_front();
      if (glances.word(ledger_.page_of(asked.frame)) == 0)
        frames[count++] = asked.frame;
      else if (now_ns - asked.since_ns < kAskedNs)
        asked_.push_back(asked);
      else
        ledger_.put_back(asked.frame);
    }
    if (count == 0) continue;
    freed += punch({frames, count}, is_freed);
    for (size_t i = 0; i < count; ++i)
      if (!is_freed[i]) ledger_.put_back(frames[i]);
  }
  return freed;
}

// Takes their pages out of memory, where they can leave, and forgets those frames; sorts them by
// page. Returns how many.
size_t Keeping::punch(std::span<FrameId> frames, std::span<bool> is_freed) {
  OC_CHECK(frames.size() <= Puncher::kPagesMax && is_freed.size() >= frames.size());
  if (frames.empty()) return 0;
  ledger_.sort_by_page(frames);
  uint64_t pages[Puncher::kPagesMax];
  for (size_t i = 0; i < frames.size(); ++i) pages[i] = ledger_.page_of(frames[i]);
  const size_t freed = puncher_.punch({pages, frames.size()}, is_freed);
  for (size_t i = 0; i < frames.size(); ++i)
    if (is_freed[i]) ledger_.freed(frames[i]);
  return freed;
}

// Whether one thread alone has brought pages in since there was too little room the last time. If
// nobody has, somebody asks for room that does not come to fill.
void Keeping::look_who_fills() {
  Board& board = member_.board();
  uint32_t members = 0, threads = 0;
  MemberRecord* filler = nullptr;
  for (uint32_t i = 0; i < board.members_end.load(); ++i) {
    MemberRecord& m = board.members[i];
    const Filled now{m.filled_pages.load(), m.filling_threads.load()};
    const Filled before = std::exchange(filled_[i], now);
    if (now.pages == before.pages) continue;
    ++members;
    threads += now.threads == before.threads ? 1 : 2;
    filler = &m;
  }
  OC_CHECK(threads >= members);
  lone_ = threads == 1 && filler->is_joined.load() != 0 ? filler : nullptr;
}

// Leaves those to the one thread that brings pages in, if there is but one, that are not to be
// stored first, and have no neighbours with which they leave at once, and forgets their frames;
// these stand first then. Returns how many.
size_t Keeping::leave_to_filler(std::span<FrameId> victims) {
  if (lone_ == nullptr) return 0;
  ledger_.sort_by_page(victims);
  size_t left = 0;
  for (size_t begin = 0, end = 0; begin < victims.size(); begin = end) {
    const uint64_t first = ledger_.page_of(victims[begin]);
    for (end = begin + 1; end < victims.size(); ++end)
      if (ledger_.page_of(victims[end]) != first + (end - begin)) break;
    if (end - begin >= kRunPages) continue;
    for (size_t i = begin; i < end; ++i)
      if (leave_to_filler(victims[i])) std::swap(victims[i], victims[left++]);
  }
  return left;
}

bool Keeping::leave_to_filler(FrameId victim) {
  const uint64_t page = ledger_.page_of(victim);
  uint64_t lost = Victims::kNone;
  if (is_any_written() && Marks::glance(member_, page) != 0) return false;
  if (!Victims::give(*lone_, page, &lost)) return false;
  if (lost != Victims::kNone) has_missed_some_ = true;
  ledger_.freed(victim);
  return true;
}

// What was left to a thread that is not alone any more, or has ended. Returns how many have left.
size_t Keeping::reclaim_victims(size_t most) {
  Board& board = member_.board();
  uint64_t pages[Puncher::kPagesMax];
  bool is_freed[Puncher::kPagesMax];
  size_t count = 0;
  for (uint32_t i = 0; i < board.members_end.load(); ++i) {
    MemberRecord& m = board.members[i];
    while (&m != lone_ && count < std::min(most, Puncher::kPagesMax) &&
           (pages[count] = Victims::take(m)) != Victims::kNone)
      ++count;
  }
  if (count == 0) return 0;
  std::sort(pages, pages + count);
  const size_t freed = puncher_.punch({pages, count}, is_freed);
  for (size_t i = 0; i < count; ++i)
    if (!is_freed[i]) ledger_.admit(board, PageReport::of(pages[i], 1, false));
  return freed;
}

}  // namespace outcore::buffer
