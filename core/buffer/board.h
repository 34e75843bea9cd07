// Board: what the processes that share a buffer have in common beside the pages: how much there may
// be, who is a member, which files are in it, and notes between them. It lies in a memory file that
// all members map; only numbers are in it, no addresses.
//
// What is true stands elsewhere, in the kernel, and so survives any death at any instruction: which
// pages are in memory, in the memory file of the frames (a page is there with its bytes, or not at
// all); who is alive, in the locks of the buffer's file (file_lock.h). The board has no state
// that must be put right when a member dies: what a dead one left there counts no more once
// somebody looks whether it is alive, and is cleared by who finds it (Member::clear_dead).
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

// Lowers a count of a member's record, not below 0: a member that has lost its lock, because the
// program closed all descriptors, is cleared by others while it still lives.
template <typename T>
void lower(os::Word<T>& count, std::type_identity_t<T> by) {
  T before = count.load(std::memory_order_relaxed);
  while (!count.compare_exchange_weak(before, before - (before < by ? before : by),
                                      std::memory_order_seq_cst)) {
  }
}

// A run of pages that a member brought in, for the keeping process, which has policies and chooses
// what leaves. 0: none.
class News {
 public:
  static constexpr uint64_t kCountMax = 0x7FFF, kGuess = 0x8000;
  constexpr News() = default;
  constexpr explicit News(uint64_t bits) : bits_(bits) {}
  // `is_guess`: nobody asked for them, and nothing proves that somebody will.
  static News of(uint64_t first_page, uint64_t count, bool is_guess) {
    OC_CHECK(count != 0 && count <= kCountMax);
    OC_CHECK(first_page < uint64_t{1} << 48);
    return News(first_page << 16 | (is_guess ? kGuess : 0) | count);
  }
  constexpr uint64_t bits() const { return bits_; }
  constexpr uint64_t first_page() const { return bits_ >> 16; }
  constexpr uint64_t count() const { return bits_ & kCountMax; }
  constexpr bool is_guess() const { return (bits_ & kGuess) != 0; }

 private:
  uint64_t bits_ = 0;
};

struct MemberRecord {
  static constexpr uint32_t kNews = 4096, kPinSets = 256, kPinWays = 16, kFills = 64;
  static constexpr uint64_t kVictims = 1024;  // and so many pages are kept free at most

  // Another number for each member that was in this place.
  os::Word<uint64_t> generation;
  // A guess that saves asking for the lock: it was taken, and not all is cleared yet that its
  // member left. Set last by who joins, and by who clears it.
  os::Word<uint32_t> is_joined;
  os::Word<uint32_t> is_holding;  // it is there for others (HeldBuffer)
  os::Word<uint32_t> is_leaving;  // others are to store what killed ones have written (Heirs)
  // Odd while this member takes pages out of the memory file, all of them from `punched_first` on
  // and below `punched_end`, which were set before; it changes each time.
  os::Word<uint32_t> punching;
  os::Word<uint64_t> punched_first, punched_end;
  os::Word<uint64_t> reserved_pages;  // of fills under way
  os::Word<uint64_t> private_bytes;   // that it may use beside the buffer's frames
  os::Word<uint64_t> filled_pages, evicted_pages;
  // The thread that reported pages last, by an address in it, and how often it was another one.
  os::Word<uint64_t> filling_thread;
  os::Word<uint32_t> filling_threads;
  // News for the keeping process; one that finds its place taken overwrites it, and says so.
  os::Word<uint64_t> news_end;
  os::Word<uint32_t> has_lost_news;
  // Pages that must stay: page + 1 in the upper 48 bits, how often below; 0: none.
  os::Word<uint32_t> pin_count;
  os::Word<uint32_t> pinned_written;  // of these pages, that it has marked; some time ago
  alignas(64) std::array<os::Word<uint64_t>, kPinSets * kPinWays> pins;
  std::array<os::Word<uint64_t>, kNews> news;
  // Runs of pages that it is just reading from a file; 0: none. As News has them.
  alignas(64) std::array<os::Word<uint64_t>, kFills> fills;
  // Pages that are to leave, and this member takes out itself (Victims): page + 1; 0: none. Which
  // of the ring are there: from `begin` to `end`.
  alignas(64) os::Word<uint64_t> victims_begin;
  os::Word<uint64_t> victims_end;
  std::array<os::Word<uint64_t>, kVictims> victims;
};

enum class FileState : uint32_t {
  kFree,
  kOpen,    // others may join
  kClosed,  // nobody new: somebody gave it back, or nobody has it any more
};

// Changed by who holds the board's lock of files.
struct FileRecord {
  os::Word<FileState> state;
  store::FileVersion version;
  uint64_t first_page, pages;                                // in the memory file of the frames
  std::array<os::Word<uint64_t>, kMembersMax / 64> members;  // bits: who has it mapped
  // Somebody has it mapped for writing: its time of change says nothing (Marks).
  os::Word<uint32_t> is_written;
  // The members that write it, by the number that pages are marked with (Writer); 0: nobody.
  std::array<os::Word<uint64_t>, kWritersMax> writers;
  // Of each, by which descriptor it has the file, + 1; and who has it by that (Heirs): bits.
  std::array<os::Word<int32_t>, kWritersMax> writer_fds;
  std::array<os::Word<uint64_t>, kMembersMax / 64> heirs;

  bool has_members() const {
    return std::any_of(members.begin(), members.end(),
                       [](const os::Word<uint64_t>& bits) { return bits.load() != 0; });
  }
};

// Writer: a member as long as it is one, as files name those that write them.
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
  static constexpr uint64_t kMagic = 0x4f43425546463038;  // OCBUFF08
  static constexpr uint32_t kClaims = 16384, kLeaving = 2048;

  os::Word<uint64_t> limit_bytes;
  os::Word<uint64_t> next_page;  // of the memory file, that no file had; never again given out
  os::Word<uint32_t> members_end, keeping_member;  // + 1; 0: nobody yet
  os::Word<uint32_t> takeovers;
  os::Word<uint32_t> has_unreported_pages;  // a member has ended: see what is in memory
  os::Word<uint64_t> used_bytes_max;
  // Pages that came in, ever, with those that dead members may have brought in and not reported: it
  // is raised before `reserved_pages` is lowered (Occupancy::pages_at_most).
  alignas(64) os::Word<uint64_t> filled_pages;
  // Words that threads sleep on, each beside how many do.
  alignas(64) os::Word<uint32_t> bell;  // for the keeping process
  os::Word<uint32_t> is_bell_heard;     // it is awake
  alignas(64) os::Word<uint32_t> room_changes;
  os::Word<uint32_t> room_waiters;
  os::Word<uint32_t> claim_waiters;
  os::Word<uint32_t> punch_waiters;  // on the `punching` of any member
  // Files that are written; and how often writers were asked to store what they have written, as
  // pages that are to leave must be.
  os::Word<uint32_t> written_files;
  alignas(64) os::Word<uint32_t> store_requests;
  os::Word<uint32_t> heir_requests;  // how often somebody began to write a file
  // Pages that anybody has marked (Marks). Who is killed while it marks or stores some may leave it
  // wrong by those few, until no file is written.
  alignas(64) os::Word<uint64_t> written_pages;
  // Written pages that are to leave, and how many there ever were (LeavingPages).
  alignas(64) os::Word<uint64_t> leaving_end;
  std::array<os::Word<uint64_t>, kLeaving> leaving;
  // Who is bringing in which page: page in the upper bits, member + 1 below. A hint, so that two do
  // not read the same: nothing is wrong if it is.
  alignas(64) std::array<os::Word<uint64_t>, kClaims> claims;
  std::array<FileRecord, kFilesMax> files;
  std::array<MemberRecord, kMembersMax> members;

  // There never was a second member, whatever became of it.
  bool never_had_company() const { return members_end.load() == 1; }
};
static_assert(os::Word<uint64_t>::is_always_lock_free);

// What members have that cannot leave: for themselves, and pinned. A dead one counts until it is
// cleared.
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

// Another build of the library lays the board out in another way, and must stay away.
inline constexpr uint64_t kLayout =
    sizeof(Board) * 1'000'003 + sizeof(MemberRecord) * 1009 + sizeof(FileRecord);

}  // namespace outcore::buffer
