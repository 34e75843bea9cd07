// Cut: the state of several caches at one moment, brought into their stores while the program runs.
//
// Rounds of flushes bring most of it there (pre-copy). What is left is frozen: unmapped, or
// protected where the first write to a page is a fault. A later look that finds nothing newly
// written proves that nobody wrote since the last one was frozen: that moment is the cut. The
// frozen pages are stored then, while the program goes on; who touches one waits until its bytes
// are copied. See docs/internals/decisions/0013-the-cut.md.
#pragma once

#include <cstdint>
#include <span>

#include "core/paging/cut_calls.h"
#include "core/paging/cut_memory.h"
#include "core/paging/cut_pages.h"
#include "core/paging/cut_search.h"
#include "core/paging/cut_writer.h"
#include "core/paging/flusher.h"
#include "core/paging/keeper.h"
#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class Cut {
 public:
  Cut(Pager& pager, Keeper& keeper, Flusher& flusher, std::span<PageCache* const> caches,
      const CutCalls& calls);
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;
  // Errors: those of quiesce(), stored() and the stores; EBUSY (a page is pinned or locked in
  // memory), EAGAIN (no moment was found), ENOMEM. After any of them all bytes are where they were.
  Result<CutReport> run() {
    Result<CutReport> report = attempt();
    if (calls_.over) calls_.over();
    return report;
  }

 private:
  Result<CutReport> attempt();
  Status prepare();
  Status precopy();
  Status find_moment();
  bool freeze();
  bool converge();
  void begin_pause();
  void stop_threads();
  void resume_threads();
  Status cannot() const;
  Status wait_for_unpin();

  Pager& pager_;
  Flusher& flusher_;
  const CutCalls calls_;  // ours: the caller's may lie in memory that is cut
  CutReport report_;
  CutPages pages_;
  CutSearch search_;
  CutMemory memory_;
  CutWriter writer_;
  uint64_t pinned_since_ns_ = 0;
  uint64_t pause_start_ns_ = 0;
  bool are_stopped_ = false, is_quiesced_ = false;
};

}  // namespace outcore::paging
