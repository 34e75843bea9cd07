// CutSearch: looks for the written pages of a cut, and freezes them.
//
// The thread of the cut, with signals blocked. Allocates nothing: turns may be held.
#pragma once

#include <cstdint>

#include "core/os/wait.h"
#include "core/paging/cut_pages.h"
#include "core/paging/pager.h"

namespace outcore::paging {

// CutObstacle: why no moment of a cut was found.
struct CutObstacle {
  enum class Kind : uint8_t { kNone, kBusyPage, kPinned, kLocked, kUnknown, kGone, kWriters };
  Kind kind = Kind::kNone;
  uint32_t index = 0;  // of the cache
  uint64_t page = 0;
};

class CutSearch {
 public:
  enum class Look : uint8_t { kList, kFreeze };

  CutSearch(Pager& pager, CutPages& pages) : pager_(pager), pages_(pages) {}

  // Puts the pages that were written on the list; with kFreeze they are frozen. False: some page is
  // in the way, or cannot be asked. REQUIRES, to freeze: every turn.
  bool look(Look look);
  // From here on nobody can write what was found from `first` on. False: as above.
  bool seal(uint64_t first);

  // From now on pages in other hands are waited for, for as long as one attempt may take; while the
  // program is paused that is less.
  void begin_waiting(uint64_t now_ns, bool is_paused) {
    settle_start_ns_ = now_ns;
    is_paused_ = is_paused;
  }
  const CutObstacle& obstacle() const { return obstacle_; }
  void set_obstacle(CutObstacle::Kind kind) { obstacle_.kind = kind; }

 private:
  // How long pages in other hands are waited for: while the program runs, and while it is paused.
  static constexpr uint64_t kSettleNsMax = 200'000'000, kPausedSettleNsMax = 20'000'000;
  static constexpr uint32_t kPiecesMax = 256, kRunsMax = 512;

  bool look_at_views(uint32_t index, Look look);
  bool look_at_frames(uint32_t index, Look look);
  bool note_run(uint32_t index, const region::View& view, const os::WrittenRun& run, Look look);
  bool examine(uint32_t index, uint64_t page, const region::View* view, const os::WrittenRun& run,
               Look look);
  bool wait_for(uint32_t index, uint64_t page, region::PageValue seen);
  bool unmap(PageCache& cache, uint64_t first, uint64_t end);
  bool protect(PageCache& cache, uint64_t first, uint64_t end);

  Pager& pager_;
  CutPages& pages_;
  CutObstacle obstacle_;
  uint64_t settle_start_ns_ = 0;
  bool is_paused_ = false;
  os::Piece piece_[kPiecesMax];
  os::WrittenRun run_[kRunsMax];
};

}  // namespace outcore::paging
