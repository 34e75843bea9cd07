// Remapper: maps pages that are in memory already, where a view does not show them yet, or not for
// writes; no I/O.
//
// The fault path; any thread. 0: the page is resident and shown. -EAGAIN: it has changed since it
// was seen; look again. Otherwise -errno.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/paging/pager.h"
#include "core/paging/prefetch_queue.h"

namespace outcore::paging {

class Remapper {
 public:
  Remapper(Pager& pager, PrefetchQueue& queue) : pager_(pager), queue_(queue) {}

  // The page is here. Either another thread filled it meanwhile, or this view does not show it yet,
  // or the first write must be let through. REQUIRES: it was seen Resident.
  int resolve_resident(PageCache& cache, region::View& view, uint64_t page, std::byte* address,
                       bool is_write, region::PageValue seen);
  // A leaving page is touched: it comes back as it was, without I/O, in every view that showed it.
  // What was written stays written, unless its write-back is through (kCleaned); one still under
  // way is repeated later. REQUIRES: it was seen Leaving.
  int rescue(PageCache& cache, region::View& view, uint64_t page, std::byte* address, bool is_write,
             region::PageValue seen);

 private:
  int make_writable(PageCache& cache, region::View& view, uint64_t page, std::byte* address);
  void note_late_write(PageCache& cache, region::View& view);

  Pager& pager_;
  PrefetchQueue& queue_;
};

}  // namespace outcore::paging
