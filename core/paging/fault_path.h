// FaultPath: what a touch of an absent, leaving or protected page leads to.
//
// The fault path; any thread. Nothing here allocates, takes a lock that a program could hold, or
// touches managed memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/os/signal_delivery.h"
#include "core/os/wait_limit.h"
#include "core/paging/call_wait.h"
#include "core/paging/cluster_filler.h"
#include "core/paging/filler.h"
#include "core/paging/frame_supply.h"
#include "core/paging/pager.h"
#include "core/paging/prefetch_queue.h"
#include "core/paging/readahead.h"
#include "core/paging/remapper.h"
#include "core/paging/shared_writer.h"

namespace outcore::paging {

class FaultPath {
 public:
  FaultPath(Pager& pager, FrameSupply& supply, Filler& filler, Remapper& remapper,
            PrefetchQueue& queue, Readahead& readahead, ClusterFiller& clusters,
            SharedWriter& writer)
      : pager_(pager),
        supply_(supply),
        filler_(filler),
        remapper_(remapper),
        queue_(queue),
        readahead_(readahead),
        clusters_(clusters),
        writer_(writer) {}

  // Answers a touch of the view's address that could not be completed. Called in the thread that
  // touched, or for it. `site`: where in the code the touch was, or which thread it was; 0:
  // unknown. `heard_ns`: when at the earliest whoever answers for another thread heard of it.
  os::FaultOutcome fault(region::View& view, std::byte* address, bool is_write, uint64_t site = 0,
                         uint64_t heard_ns = CleanedTimes::kNever);
  // For several faults at once: fills those of the pages that are plainly absent, in one batch.
  // Each fault must still be answered by fault() afterwards. Called by a thread of ours.
  void fill_many(region::View& view, std::span<const os::Touch> touches);
  // For a call of the program: makes the page resident and maps it in the view. 0 or -errno. With
  // is_write, `address` can then be written. `wait` begins if the page is missing.
  int bring_in(region::View& view, uint64_t page, std::byte* address, bool is_write,
               CallWait* wait) {
    return bring_in(view, page, address, {is_write}, Caller::kThread, 0, wait);
  }

 private:
  // What the touch wants; a write that may be over by now wants to read.
  struct Wanted {
    bool is_write = false;
    uint64_t heard_ns = CleanedTimes::kNever;
    bool writes(const PageCache& cache, uint64_t page) const {
      return is_write && !cache.is_late_write(page, heard_ns);
    }
  };

  // `wait`: null in a fault.
  int bring_in(region::View& view, uint64_t page, std::byte* address, Wanted wanted, Caller caller,
               uint64_t site, CallWait* wait);
  int bring_in_shared(region::View& view, uint64_t page, Wanted wanted, Caller caller,
                      uint64_t site, CallWait* wait);
  int fill_claimed(PageCache& cache, region::View& view, uint64_t page, bool is_write,
                   Caller caller, uint64_t site, bool is_first_try);
  bool wait_for_page(PageCache& cache, uint64_t page, region::PageValue seen, Caller caller);
  bool is_within_wait(std::optional<os::WaitLimit>* limit) const;
  int demand(region::View& view, uint64_t page, bool is_write, uint64_t site,
             std::optional<os::WaitLimit>* limit);

  Pager& pager_;
  FrameSupply& supply_;
  Filler& filler_;
  Remapper& remapper_;
  PrefetchQueue& queue_;
  Readahead& readahead_;
  ClusterFiller& clusters_;
  SharedWriter& writer_;
};

}  // namespace outcore::paging
