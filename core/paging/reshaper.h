// Reshaper: changes the shape of views, and lets stores change their bytes, while the program runs:
// for munmap, mremap and mprotect of a program, and for its system calls on the file.
//
// Calls of the program, one at a time: REQUIRES the runtime's mapping lock, or two of them could
// wait for each other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/base/function_ref.h"
#include "core/paging/pager.h"
#include "core/paging/prefetch_queue.h"
#include "core/paging/ranges.h"
#include "core/paging/view_list.h"
#include "outcore/result.h"

namespace outcore::paging {

class Reshaper {
 public:
  Reshaper(Pager& pager, Ranges& ranges, ViewList& views, PrefetchQueue& queue)
      : pager_(pager), ranges_(ranges), views_(views), queue_(queue) {}

  // Evicts the pages and keeps them out, so that their bytes can change in the store: a touch of
  // one waits. REQUIRES: unblock() follows soon. Errors, after which none is blocked: EBUSY
  // (pinned, or touched all the time), those of a write-back.
  Status evict_and_block(PageCache& cache, uint64_t first, uint64_t end);
  void unblock(PageCache& cache, uint64_t first, uint64_t end);
  // Replaces a view by views of parts of its addresses, which are sorted; the kernel's mappings
  // stay. `between` runs when no fault uses the old view any more and the pages that no part has
  // are blocked. Errors: as evict_and_block(); then nothing has changed.
  Status swap_view(PageCache& cache, region::View* old, std::span<region::View* const> parts,
                   const std::function<void()>& between);
  // Gives the addresses of a view to the kernel while the program uses them: who touches them waits
  // until `place` has mapped something else there. `prepare` runs before, while all its pages are
  // blocked and stored. `twin`: another view of the same, which is in no map. Afterwards `*shown`
  // is which of the two is in the maps: none, or, after an error, either. REQUIRES: the view has
  // whole pages, and other views of the cache remain. Errors: as evict_and_block(), those of the
  // two.
  Status give_view(PageCache& cache, region::View** shown, region::View* twin,
                   base::FunctionRef<Status()> prepare, base::FunctionRef<Status()> place);

 private:
  Status replace_view(PageCache& cache, region::View* old, std::span<region::View* const> parts,
                      region::View* gone = nullptr);
  Status insert_parts(PageCache& cache, std::span<region::View* const> parts);
  void hand_on_shown(PageCache& cache, const region::View& old,
                     std::span<region::View* const> parts);

  Pager& pager_;
  Ranges& ranges_;
  ViewList& views_;
  PrefetchQueue& queue_;
};

}  // namespace outcore::paging
