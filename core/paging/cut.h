// Cut: the state of several spaces at one moment, brought into their stores while the program runs.
//
// Rounds of flushes bring most of it there (pre-copy). What is left is frozen: unmapped, or
// protected where the first write to a page is a fault. A later look that finds nothing newly
// written proves that nobody wrote since the last one was frozen: that moment is the cut. The
// frozen pages are stored then, while the program goes on; who touches one waits until its bytes
// are copied. See docs/internals/decisions/0013-the-cut.md.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/base/assert.h"
#include "core/os/address_space.h"
#include "core/paging/engine.h"
#include "outcore/result.h"

namespace outcore::paging {

// What a cut calls, in the thread that asked for it and with signals blocked. Only quiesce(),
// resume(), entered() and over() may touch memory of the spaces; none may call the engine.
struct CutCalls {
  // The program brings itself to a state of its choice, and writes nothing until resume(): then no
  // thread is stopped. Empty: the cut finds its moment itself. resume() follows whenever quiesce()
  // succeeded, in a thread of its own, which may touch the spaces.
  std::function<Status()> quiesce;
  std::function<void()> resume;
  // Before the moment is looked for, and after quiesce(); it may write to the spaces, too. Each
  // that succeeds is followed by left(), which may not: the moment is found, or this attempt over.
  std::function<Status()> entered;
  std::function<void(bool is_found)> left;
  // Last, with the gates open; it may write to the spaces. No other cut has begun.
  std::function<void()> over;
  // Everything is in the stores, and nothing that was written later: the store's next epoch begins.
  std::function<Status()> stored;
  // If the look that follows finds nothing newly written, this is the moment of the cut.
  std::function<void()> candidate;
  // Ordinary memory that belongs to the cut, none of it the engine's. Threads are stopped before it
  // is copied, and it must be the same when the last look is done; the copies come from the budget.
  std::vector<std::span<const std::byte>> memory;
  // Before stored(): the copies, one behind the other.
  std::function<Status(std::span<const std::byte>)> copied;
  // Instead of os::ThreadStop: stops those who write, and lets them go on. stop() says how many.
  std::function<uint32_t()> stop;
  std::function<void()> go_on;
  bool may_stop_threads = true;  // false: who writes without end makes the cut fail
  bool may_wait = true;          // false: EAGAIN while another cut is under way
};

struct CutReport {
  uint64_t pause_ns = 0;         // from the first unmapping or stop to the last thread's release
  uint64_t precopy_rounds = 0;   // of the last attempt, as the next three
  uint64_t looks = 0;            // for written pages, from the first freeze on
  uint64_t frozen_pages = 0;     // left in the last round
  uint64_t stopped_threads = 0;  // 0: it converged without
  uint64_t frozen_bytes = 0;     // of them stored
  uint64_t precopied_bytes = 0;  // stored before
  uint64_t attempts = 0;
};

class Cut {
 public:
  Cut(Engine& engine, std::span<Space* const> spaces, const CutCalls& calls);
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  ~Cut();
  // Errors: those of quiesce(), stored() and the stores; EBUSY (a page is pinned or locked in
  // memory), EAGAIN (no moment was found), ENOMEM. After any of them all bytes are where they were.
  Result<CutReport> run() {
    Result<CutReport> report = attempt();
    if (calls_.over) calls_.over();
    return report;
  }

 private:
  enum class Look : uint8_t { kList, kFreeze };
  // How long pages in other hands are waited for: while the program runs, and while it is paused.
  static constexpr uint64_t kSettleNsMax = 200'000'000, kPausedSettleNsMax = 20'000'000;
  static constexpr uint32_t kRequestsMax = 256, kPiecesMax = 256, kRunsMax = 512;

  // cut.cc
  Result<CutReport> attempt();
  Status prepare();
  Status precopy();
  uint64_t listed_bytes() const;
  Status find_moment();
  bool freeze();
  bool converge();
  void stop_threads();
  void let_threads_go();
  Status cannot() const;
  Status wait_for_unpin();
  Status store();
  // cut_memory.cc
  Result<std::byte*> take(uint64_t* bytes, uint64_t least, const char* what);
  Status take_buffer();
  Status take_memory();
  void copy_memory();
  bool is_memory_as_copied() const;
  // cut_look.cc
  bool look(Look look);
  bool look_at_views(uint32_t index, Look look);
  bool look_at_frames(uint32_t index, Look look);
  bool note_run(uint32_t index, const region::View& view, const os::WrittenRun& run, Look look);
  bool examine(uint32_t index, uint64_t page, const region::View* view, const os::WrittenRun& run,
               Look look);
  bool wait_for(uint32_t index, uint64_t page, region::PageValue seen);
  bool seal(uint64_t first);
  bool unmap(Space& space, uint64_t first, uint64_t end);
  bool protect(Space& space, uint64_t first, uint64_t end);
  // cut_store.cc
  bool copy(uint64_t i);
  uint64_t copy_run(uint64_t i);
  bool take_bytes(uint64_t i, const os::Piece& piece, uint64_t to);
  os::SubpageSet written_of(uint64_t i);
  void show(uint64_t i, bool is_stored);
  void undo(uint64_t first, uint64_t end);
  void write_out();
  void fail(const StoreRequest& request, Space& space);

  // A page of the list: which of the spaces, and which page.
  static uint64_t key_of(uint32_t index, uint64_t page) {
    OC_CHECK(page >> 48 == 0);
    OC_CHECK(index >> 16 == 0);
    return uint64_t{index} << 48 | page;
  }
  static uint32_t index_of(uint64_t key) { return static_cast<uint32_t>(key >> 48); }
  static uint64_t page_of(uint64_t key) { return key & ((uint64_t{1} << 48) - 1); }
  Space& space_of(uint64_t i) const { return *spaces_[index_of(key_[i])]; }
  region::PageWord& word_of(uint64_t i) const { return space_of(i).words[page_of(key_[i])]; }

  Engine& engine_;
  const CutCalls calls_;        // ours: the caller's may lie in memory that is cut
  std::vector<Space*> spaces_;  // that are writable; in ordinary memory
  CutReport report_;

  // The pages that were found written; once frozen, in the order in which they are stored.
  os::Table<uint64_t> key_;
  uint64_t count_ = 0;
  // Of private frames with larger pages: what was written when they were protected.
  os::Table<uint64_t> written_bits_;
  uint64_t words_each_ = 0;

  // Why an attempt failed.
  enum class Obstacle : uint8_t { kNone, kBusyPage, kPinned, kLocked, kUnknown, kGone, kWriters };
  Obstacle obstacle_ = Obstacle::kNone;
  uint32_t obstacle_index_ = 0;
  uint64_t obstacle_page_ = 0;
  uint64_t settle_start_ns_ = 0, pinned_since_ns_ = 0;
  uint64_t pause_start_ns_ = 0;
  bool are_stopped_ = false, is_quiesced_ = false, are_gates_closed_ = false;

  os::Piece piece_[kPiecesMax];
  os::WrittenRun run_[kRunsMax];

  std::byte* memory_ = nullptr;  // copies of calls_.memory
  uint64_t memory_bytes_ = 0;

  // The side buffer: frozen bytes on their way to the stores.
  std::byte* buffer_ = nullptr;
  uint64_t buffer_bytes_ = 0, buffer_used_ = 0;
  StoreRequest request_[kRequestsMax];
  uint32_t request_index_[kRequestsMax];  // of the space
  uint32_t request_count_ = 0;
  int error_ = 0;
  StoreRequest failed_;
  uint32_t failed_index_ = 0;
};

}  // namespace outcore::paging
