// Board: what the processes that share a buffer have in common beside the pages: the limit, the
// members, the files, and reports between members. It lies in a memfd that all members map; only
// numbers are in it, no addresses.
//
// The two facts that must survive any death, at any instruction, are kept by the kernel: which
// pages are in memory (the memfd of the frames has a page with its bytes, or not at all), and who
// is alive (the locks of the buffer's file, file_lock.h). The board has no state that must be
// repaired when a member dies: before a member's entries are used, the reader asks whether it is
// alive; the entries of a dead one are cleared by the process that finds them (Member::clear_dead).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/word.h"
#include "core/store/file_version.h"

namespace outcore::buffer {

inline constexpr uint32_t kMembersMax = 256, kFilesMax = 1024, kWritersMax = 56;
inline constexpr uint64_t kPage = base::kSystemPage;

// Lowers a count of a member's record, but not below 0. (A member that has lost its lock, because
// the program closed all descriptors, is cleared by others while it still lives.)
template <typename T>
void lower(os::Word<T>& count, std::type_identity_t<T> by) {
  T before = count.load(std::memory_order_relaxed);
  while (!count.compare_exchange_weak(before, before - (before < by ? before : by),
                                      std::memory_order_seq_cst)) {
  }
}

// A report to the keeping process, which chooses what leaves: a run of pages that a member brought
// in. 0: none.
class PageReport {
 public:
  static constexpr uint64_t kCountMax = 0x7FFF, kGuess = 0x8000;
  constexpr PageReport() = default;
  constexpr explicit PageReport(uint64_t bits) : bits_(bits) {}
  // `is_guess`: nobody asked for the pages yet; they were brought in ahead.
  static PageReport of(uint64_t first_page, uint64_t count, bool is_guess) {
    OC_CHECK(count != 0 && count <= kCountMax);
    OC_CHECK(first_page < uint64_t{1} << 48);
    return PageReport(first_page << 16 | (is_guess ? kGuess : 0) | count);
  }
  constexpr uint64_t bits() const { return bits_; }
  constexpr uint64_t first_page() const { return bits_ >> 16; }
  constexpr uint64_t count() const { return bits_ & kCountMax; }
  constexpr bool is_guess() const { return (bits_ & kGuess) != 0; }

 private:
  uint64_t bits_ = 0;
};

// Whether a member opens files that others begin to write.
enum class HeirAnswer : uint32_t {
  kSoon,
  kLate,   // it did not in time, and has not since: perhaps it is stopped
  kNever,  // it cannot
};

struct MemberRecord {
  static constexpr uint32_t kReports = 4096, kPinSets = 256, kPinWays = 16, kFills = 64;
  static constexpr uint64_t kVictims = 1024;  // also the most pages that are kept free

  // Differs for each member that was ever in this place.
  os::Word<uint64_t> generation;
  // A hint that saves asking for the lock: 1 from the end of joining to the end of clearing. Set
  // last by the member that joins, and by the one that clears the record.
  os::Word<uint32_t> is_joined;
  os::Word<uint32_t> is_holding;  // maps nothing, keeps the buffer alive for others (HeldBuffer)
  os::Word<uint32_t> is_leaving;  // stores no more for killed members: others must (Heirs)
  // The last of Board::heir_requests after which it has opened what it can, and how long others
  // wait until it has.
  os::Word<uint32_t> heir_requests_heard;
  os::Word<HeirAnswer> heir_answer;
  // Of a program under `outcore run` that shares what it writes (Opener): its process, when that
  // began, and how many of its calls are just opening a file. 0: none.
  os::Word<uint64_t> process, process_start;
  os::Word<uint32_t> opening;
  // Odd while this member punches pages in [punched_first, punched_end), which are set before. It
  // changes at each beginning and end.
  os::Word<uint32_t> punching;
  os::Word<uint64_t> punched_first, punched_end;
  os::Word<uint64_t> reserved_pages;  // of fills under way
  os::Word<uint64_t> private_bytes;   // that it may use beside the buffer's frames
  os::Word<uint64_t> filled_pages, evicted_pages;
  // The thread that reported pages last, as an address in it; and how often that changed.
  os::Word<uint64_t> filling_thread;
  os::Word<uint32_t> filling_threads;
  // Reports for the keeping process, a ring. One that finds its place taken overwrites it, and sets
  // has_lost_reports.
  os::Word<uint64_t> reports_end;
  os::Word<uint32_t> has_lost_reports;
  // Pinned pages: page + 1 in the upper 48 bits, the number of pins below; 0: none.
  os::Word<uint32_t> pin_count;
  os::Word<uint32_t> pinned_written;  // pinned pages that it has marked; may be out of date
  alignas(64) std::array<os::Word<uint64_t>, kPinSets * kPinWays> pins;
  std::array<os::Word<uint64_t>, kReports> reports;
  // Runs of pages that it is reading from a file now, encoded as PageReport; 0: none.
  alignas(64) std::array<os::Word<uint64_t>, kFills> fills;
  // A ring of pages that are to leave, and that this member punches itself (Victims): page + 1; 0:
  // none. The ring's entries are those from `begin` to `end`.
  alignas(64) os::Word<uint64_t> victims_begin;
  os::Word<uint64_t> victims_end;
  std::array<os::Word<uint64_t>, kVictims> victims;
};

enum class FileState : uint32_t {
  kFree,
  kOpen,    // others may join
  kClosed,  // no more may join: it is about to change, or no member has it any more
};

// REQUIRES, to change it: the lock of files (Member::FilesLock).
struct FileRecord {
  os::Word<FileState> state;
  store::FileVersion version;
  uint64_t first_page, pages;                                // in the memory file of the frames
  std::array<os::Word<uint64_t>, kMembersMax / 64> members;  // bits: who has it mapped
  // Some member has it mapped for writing, so its modification time says nothing (Marks).
  os::Word<uint32_t> is_written;
  // The members that write it (Writer), by their slot, whose bit marks pages; 0: the slot is free.
  std::array<os::Word<uint64_t>, kWritersMax> writers;
  // The descriptor + 1 by which each of them has the file; and the members that have opened that
  // (Heirs), as bits.
  std::array<os::Word<int32_t>, kWritersMax> writer_fds;
  std::array<os::Word<uint64_t>, kMembersMax / 64> heirs;
  // All who have it write it, and hand it back to the kernel together (HandingBack): the attempt,
  // with its phase in the lowest bits; for which attempt each writer has halted; and which writers
  // are about to end: bits.
  os::Word<uint32_t> is_together, handing_back;
  std::array<os::Word<uint32_t>, kWritersMax> halted;
  os::Word<uint64_t> ending;

  bool has_members() const {
    return std::any_of(members.begin(), members.end(),
                       [](const os::Word<uint64_t>& bits) { return bits.load() != 0; });
  }
};

// Writer: identifies a member that writes a file, by its place and generation; it names nobody any
// more when that member has left.
class Writer {
 public:
  constexpr explicit Writer(uint64_t bits = 0) : bits_(bits) {}
  static Writer of(const MemberRecord& record, uint32_t index) {
    return Writer(record.generation.load() << 16 | (index + 1));
  }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool is_any() const { return bits_ != 0; }
  constexpr uint32_t index() const { return static_cast<uint32_t>(bits_ & 0xFFFF) - 1; }
  constexpr uint64_t generation() const { return bits_ >> 16; }
  bool operator==(const Writer&) const = default;

 private:
  uint64_t bits_;
};

struct Board {
  static constexpr uint64_t kMagic = 0x4f43425546463130;  // OCBUFF10
  static constexpr uint32_t kClaims = 16384, kLeaving = 2048;

  os::Word<uint64_t> limit_bytes;
  os::Word<uint64_t> next_page;  // the first page of the frames' memfd that no file ever had
  os::Word<uint32_t> members_end, keeping_member;  // index + 1; 0: nobody yet
  os::Word<uint32_t> takeovers;
  os::Word<uint32_t> has_unreported_pages;  // a member has ended: scan the memory for its pages
  os::Word<uint64_t> used_bytes_max;
  // Pages that came in since the buffer was made, with those that dead members may have brought in
  // without a report. Raised before `reserved_pages` is lowered (Occupancy::pages_at_most).
  alignas(64) os::Word<uint64_t> filled_pages;
  // Words that threads sleep on, each beside the number of sleepers.
  alignas(64) os::Word<uint32_t> bell;  // for the keeping process
  os::Word<uint32_t> is_bell_heard;     // the keeping process is awake
  alignas(64) os::Word<uint32_t> room_changes;
  os::Word<uint32_t> room_waiters;
  os::Word<uint32_t> claim_waiters;
  os::Word<uint32_t> punch_waiters;  // on the `punching` of any member
  // How many files are written; and how often writers were asked to store pages, which must be
  // stored before they can leave.
  os::Word<uint32_t> written_files;
  alignas(64) os::Word<uint32_t> store_requests;
  os::Word<uint32_t> heir_requests;    // how often a member began to write a file
  os::Word<uint32_t> handing_changes;  // how often some HandingBack went on
  // Marked pages of all members (Marks). A member that is killed while it marks or stores pages may
  // leave the count wrong by those few, until no file is written.
  alignas(64) os::Word<uint64_t> written_pages;
  // A ring of written pages that are to leave, and how many were ever put into it (LeavingPages).
  alignas(64) os::Word<uint64_t> leaving_end;
  std::array<os::Word<uint64_t>, kLeaving> leaving;
  // Which member is bringing in which page: the page in the upper bits, member + 1 below. A hint,
  // so that two do not read the same page; if they do, nothing goes wrong.
  alignas(64) std::array<os::Word<uint64_t>, kClaims> claims;
  std::array<FileRecord, kFilesMax> files;
  std::array<MemberRecord, kMembersMax> members;

  // At most one process has ever joined.
  bool never_had_company() const { return members_end.load() == 1; }
};
static_assert(os::Word<uint64_t>::is_always_lock_free);

// Memory of members that cannot leave: what they have for themselves, and pinned pages. A dead
// member's counts until it is cleared.
struct Kept {
  uint64_t private_bytes = 0, pinned_bytes = 0;
  uint64_t pinned_written_pages = 0;
};
inline Kept kept_by_members(const Board& board) {
  Kept kept;
  const uint32_t end = board.members_end.load(std::memory_order_acquire);
  OC_CHECK(end <= kMembersMax);
  for (uint32_t i = 0; i < end; ++i) {
    kept.private_bytes += board.members[i].private_bytes.load();
    const uint32_t pinned = board.members[i].pin_count.load(std::memory_order_seq_cst);
    kept.pinned_bytes += pinned * kPage;
    kept.pinned_written_pages += std::min(pinned, board.members[i].pinned_written.load());
  }
  return kept;
}

// Identifies the layout of the board: a build of the library with another layout cannot join.
inline constexpr uint64_t kLayout =
    sizeof(Board) * 1'000'003 + sizeof(MemberRecord) * 1009 + sizeof(FileRecord);

}  // namespace outcore::buffer
