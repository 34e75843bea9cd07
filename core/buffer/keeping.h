// Keeping: chooses what leaves a buffer, in one process at a time.
//
// Each member has a thread that tries to get the lock of the keeping process, which the kernel
// releases when its process ends, in any way. A new keeping process learns from the memfd itself
// which pages are in memory; what the policy had learnt is forgotten. Everything else that it needs
// is in its own memory (PageLedger).
//
// Pages that come in are reported (Room::report); touches of pages in memory cannot be observed.
// Therefore the policy is s3-fifo: a page that is missed again soon after it left stays longer.
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
  // How often a member tries to become the keeping process, and that one looks for dead members.
  static constexpr uint64_t kPeriodNs = 100'000'000;

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
  // Minimum time between two scans of the memory, while other pages can be evicted: a scan costs
  // two system calls for each run of pages.
  static constexpr uint64_t kLookNs = 1'000'000'000;
  // How long a written victim waits, while room is needed, to be stored by its writers; and how
  // many victims may wait.
  static constexpr uint64_t kAskedNs = 20'000'000;
  static constexpr size_t kAskedMax = Board::kLeaving / 2;
  // Runs of at least so many neighbours are not left to the filler (Victims): one call punches
  // them.
  static constexpr size_t kRunPages = 4;
  struct Asked {
    FrameId frame{};
    uint64_t since_ns = 0;
  };
  // How many pages a member has brought in, and how often the thread that did so changed.
  struct Filled {
    uint64_t pages = 0;
    uint32_t threads = 0;
  };

  Status begin();
  void step();
  void wake_room_waiters();
  void look_after_members();
  void forget_files();
  void drain_reports();
  bool must_wait_for_report(uint32_t member, uint64_t waiting);
  void look_at_memory();
  void make_room();
  void ask_writers();
  size_t evict(size_t most);
  size_t evict_asked(size_t most);
  size_t punch(std::span<FrameId> frames, std::span<bool> is_freed);
  void look_who_fills();
  size_t leave_to_filler(std::span<FrameId> victims);
  bool leave_to_filler(FrameId victim);
  size_t reclaim_victims(size_t most);
  bool is_any_written() const { return member_.board().written_files.load() != 0; }

  Member& member_;
  Puncher& puncher_;
  PageLedger ledger_;
  std::deque<Asked> asked_;
  std::array<Filled, kMembersMax> filled_{};
  MemberRecord* lone_ = nullptr;  // the member whose thread is the only one that fills, if so
  std::array<uint64_t, kMembersMax> reports_read_{};
  std::array<uint64_t, kMembersMax> gap_since_ns_{};  // since when the next one is missing; 0: no
  bool has_missed_some_ = false;  // reports are lost: pages may be in memory that are not known
  uint64_t looked_after_ns_ = 0, looked_at_memory_ns_ = 0;
  os::Word<uint32_t> is_ending_{0};
  std::thread thread_;
};

}  // namespace outcore::buffer
