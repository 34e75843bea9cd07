// Keeping: chooses what leaves a buffer, in one process at a time.
//
// Each member has a thread that tries for the lock of the keeping process, which the kernel takes
// from a process that ends, however it ends. The new one learns what is in memory from the
// memory file itself; what policies had learnt is forgotten. Everything else that it needs is in
// its own memory (PageLedger).
//
// Pages that come in are reported (Room::report); touches of pages that are there nobody sees. So
// s3-fifo it is: what is missed again soon after it left stays longer.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <thread>

#include "core/buffer/member.h"
#include "core/buffer/page_ledger.h"
#include "core/buffer/puncher.h"
#include "core/os/word.h"
#include "outcore/result.h"

namespace outcore::buffer {

class Keeping {
 public:
  static constexpr uint64_t kPeriodNs = 100'000'000;  // after which a dead one is replaced

  // REQUIRES: both live longer.
  Keeping(Member& member, Puncher& puncher) : member_(member), puncher_(puncher) {}
  ~Keeping();  // ends the thread
  Keeping(const Keeping&) = delete;
  Keeping& operator=(const Keeping&) = delete;

  Status start();  // EAGAIN: no thread could be started
  // What the thread does, until it is told to end: for a simulation, which has no threads.
  void run();
  void tell_to_end();

 private:
  // To look at all memory costs a system call for every stretch of pages: so long between two, if
  // there are other pages that can leave.
  static constexpr uint64_t kLookNs = 1'000'000'000;
  // A victim that is written waits so long for those who store it, while room is needed, and so
  // many do.
  static constexpr uint64_t kAskedNs = 20'000'000;
  static constexpr size_t kAskedMax = Board::kLeaving / 2;
  // So many neighbours are taken out here, by one call.
  static constexpr size_t kRunPages = 4;
  struct Asked {
    FrameId frame{};
    uint64_t since_ns = 0;
  };
  // What a member has brought in, and how often by another thread than the time before.
  struct Filled {
    uint64_t pages = 0;
    uint32_t threads = 0;
  };

  Status begin();
  void step();
  void wake_room_waiters();
  void look_after_members();
  void forget_files();
  void drain_news();
  bool must_wait_for_news(uint32_t member, uint64_t waiting);
  void look_at_memory();
  void make_room();
  void ask_writers();
  size_t evict(size_t most);
  size_t evict_asked(size_t most);
  size_t punch(std::span<FrameId> frames, std::span<bool> is_freed);
  void look_who_fills();
  size_t leave_to_filler(std::span<FrameId> victims);
  bool leave_to_filler(FrameId victim);
  size_t take_back(size_t most);
  bool is_any_written() const { return member_.board().written_files.load() != 0; }

  Member& member_;
  Puncher& puncher_;
  PageLedger ledger_;
  std::deque<Asked> asked_;
  std::array<Filled, kMembersMax> filled_{};
  MemberRecord* lone_ = nullptr;  // of the thread that brings pages in, if it is but one
  std::array<uint64_t, kMembersMax> news_read_{};
  std::array<uint64_t, kMembersMax> gap_since_ns_{};  // the next of them is not there; 0: it is
  bool has_missed_some_ = false;  // pages are in memory that nobody reported, or reported in vain
  uint64_t looked_after_ns_ = 0, looked_at_memory_ns_ = 0;
  os::Word<uint32_t> is_ending_{0};
  std::thread thread_;
};

}  // namespace outcore::buffer
