// ClusterFiller: brings in several neighbouring pages by one transfer, for one miss: those that a
// sequential reader will want next, or the cluster that the tuner chooses.
//
// The fault path; any thread. No lock; it touches no managed memory.
#pragma once

#include <cstdint>

#include "core/paging/filler.h"
#include "core/paging/frame_supply.h"
#include "core/paging/pager.h"
#include "core/paging/prefetch_queue.h"
#include "core/paging/shared_filler.h"
#include "core/prefetch/fetch_tuner.h"

namespace outcore::paging {

class ClusterFiller {
 public:
  static constexpr uint32_t kPagesMax = 1 << prefetch::FetchTuner::kLevelMax;  // of a transfer

  ClusterFiller(Pager& pager, FrameSupply& supply, Filler& filler, SharedFiller& shared,
                PrefetchQueue& queue)
      : pager_(pager), supply_(supply), filler_(filler), shared_(shared), queue_(queue) {}

  // Pages [first, end) that are in memory after a miss, including those that were there before.
  struct Cluster {
    uint64_t first = 0, end = 0;
    int result = 0;  // 0: the page is there. -EAGAIN: look again. Otherwise -errno
  };

  // Fills the page alone. 0 or -errno; of a buffer's pages also -EAGAIN: look again. REQUIRES: the
  // page is Filling and ours, or a buffer's. `was_absent`: the kernel has just said so, by a fault.
  int fill_alone(PageCache& cache, region::View& view, uint64_t page, bool is_write, Caller caller,
                 bool was_absent);
  // Whether the page can come in together with others now; may be out of date.
  bool may_fill(const PageCache& cache, const region::View& view, uint64_t page) const;
  // Fills the page and up to `count` - 1 neighbours in the direction of its reader: a reader that
  // is faster than the prefetch threads pays one fault for all of them. 0: it is there. -EAGAIN:
  // look again. Otherwise the error of the memory for the page. REQUIRES: the page is Filling and
  // ours, or a buffer's; may_fill().
  int fill_along(PageCache& cache, region::View& view, uint64_t page, int64_t stride,
                 uint32_t count, bool is_write, Caller caller);
  // Fills the page, and as many pages around it, or ahead of it, as the tuner finds worth it.
  // `site`: where in the code the touch was. REQUIRES: the page is Filling and ours, or a buffer's.
  Cluster fill_around(PageCache& cache, region::View& view, uint64_t page, bool is_write,
                      Caller caller, uint64_t site);
  // Whether fill_around() would bring in more than the page. If not, this miss has been noted.
  bool wants_more(PageCache& cache, const region::View& view, uint64_t page, uint64_t site);
  // Whether the tuner wants to observe if the page, which is absent or claimed by the caller, is
  // missed: readahead then leaves one such page out of a request. For a buffer's pages the kernel
  // is asked whether they are in memory.
  bool is_wanted(const PageCache& cache, uint64_t page) const;
  // Notes a miss that is filled in another way.
  void note_miss(PageCache& cache, uint64_t page);
  // Those of the pages first, first + stride … below `end` that are in memory now, except `asked`,
  // came in ahead of their reader: they will not be missed, and the tuner stops watching them.
  void note_unasked(PageCache& cache, uint64_t first, uint64_t end, uint64_t stride,
                    uint64_t asked = prefetch::FetchTuner::kNone);

 private:
  // What is brought in with the page: all absent pages of [first, end) except `left_out`.
  struct Wanted {
    uint64_t page = 0, first = 0, end = 0, left_out = 0;
    bool is_guess = false;    // no evidence yet that the others will be used
    bool is_written = false;  // the page was asked for by a write
  };
  const budget::BouncePool& bounce_of(const PageCache& cache) const;
  bool is_off(const PageCache& cache, const region::View& view) const;
  bool is_stored(const PageCache& cache, uint64_t page) const;
  uint64_t room_pages(const PageCache& cache) const;
  static prefetch::FetchTuner::Miss locate(const PageCache& cache, uint64_t page, uint64_t site);
  void look_for_room(const PageCache& cache, prefetch::FetchTuner::Miss* miss) const;
  void describe(const PageCache& cache, const region::View& view,
                prefetch::FetchTuner::Miss* miss) const;
  void hint(region::View& view, uint64_t first, uint64_t count, uint64_t end);
  // The pages of a transfer (bit i: page first + i), and their frames, in order.
  struct Claimed {
    uint64_t page[kPagesMax / 64] = {};
    uint32_t count = 0;
    uint32_t frame[kPagesMax];
  };
  int claim(PageCache& cache, const region::View& view, const Wanted& wanted, Caller caller,
            Claimed* claimed);
  void bring_in(PageCache& cache, region::View& view, const Wanted& wanted, Caller caller,
                Claimed* claimed);
  int fill_wanted(PageCache& cache, region::View& view, const Wanted& wanted, Caller caller,
                  uint32_t* filled);

  Pager& pager_;
  FrameSupply& supply_;
  Filler& filler_;
  SharedFiller& shared_;
  PrefetchQueue& queue_;
};

}  // namespace outcore::paging
