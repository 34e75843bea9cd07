// Prefetcher: fills ahead of the fault, many pages a transfer, in threads of its own; and what
// faulting threads leave to those threads.
#pragma once

#include <cstdint>
#include <span>

#include "core/paging/cluster_filler.h"
#include "core/paging/filler.h"
#include "core/paging/frame_supply.h"
#include "core/paging/page_batch.h"
#include "core/paging/pager.h"
#include "core/paging/prefetch_queue.h"
#include "core/paging/remapper.h"

namespace outcore::paging {

class Prefetcher {
 public:
  Prefetcher(Pager& pager, FrameSupply& supply, Filler& filler, SharedFiller& shared,
             ClusterFiller& clusters, Remapper& remapper, PrefetchQueue& queue)
      : pager_(pager),
        supply_(supply),
        filler_(filler),
        shared_(shared),
        clusters_(clusters),
        remapper_(remapper),
        queue_(queue) {}

  // Hints, of `count` pages from `first` on: dropped if there is no room. Any thread; the fault
  // path. `is_readahead`: nobody asked for them, so one page that the tuner watches stays out.
  void prefetch(region::View& view, uint64_t first, int64_t stride, uint64_t count,
                bool is_readahead);
  // For a call of the program that goes on to copy the pages [first, end): brings in those of its
  // beginning that are absent, by transfers of many pages, in this thread. Gives the page before
  // which nothing is left to bring in so, which is behind `first` unless that is `end`: at a modest
  // share of the budget, so that what came in is there until it is copied. A hint: errors and lack
  // of room are found by whoever asks for the page. With signals blocked.
  uint64_t bring_in_for_call(region::View& view, uint64_t first, uint64_t end);
  // Carries out one queued prefetch or demand; false if there was none. A thread of ours.
  bool run_one();
  // A prefetch thread, until Pager::is_stopping.
  void run();

 private:
  void fill_demanded(PageCache& cache, const PrefetchRequest& request);
  // Pages that were brought in ahead, in the order of the store, or are to be.
  struct Walk {
    uint64_t first = 0, end = 0, stride = 1, count = 0;  // `end`: so far
  };
  static Walk walk_of(const PrefetchRequest& request);
  uint32_t list_max(const PageCache& cache) const;
  uint64_t call_pages(const PageCache& cache) const;
  uint64_t fill_for_call(region::View& view, uint64_t first, uint64_t count);
  void fill_list(const PrefetchRequest& request);
  void fill_ahead(std::span<const PrefetchRequest> requests,
                  metrics::Counter counter = metrics::Counter::prefetch_fills);
  // Adds the pages of the request to the batch; false if there is no room for more.
  bool gather(const PrefetchRequest& request, PageBatch* ahead, Walk* walk, uint64_t* dropped);
  static uint64_t claim_some(PageCache& cache, uint64_t page, uint64_t stride, uint64_t count,
                             uint64_t end);
  void show_resident(PageCache& cache, region::View& view, uint64_t page, PageBatch* ahead);
  enum class Begun : uint8_t { kYes, kNoRoom, kFailed };
  Begun begin_page(PageCache& cache, region::View& view, uint64_t page, bool is_guess,
                   PageBatch* ahead);
  void fill_shared(const PrefetchRequest& request);

  Pager& pager_;
  FrameSupply& supply_;
  Filler& filler_;
  SharedFiller& shared_;
  ClusterFiller& clusters_;
  Remapper& remapper_;
  PrefetchQueue& queue_;
};

}  // namespace outcore::paging
