// Reshaper: views change their shape, and stores their bytes, while the program goes on: what a
// program does to its mappings by munmap, mremap, mprotect and by system calls on the file.
//
// Calls of the program, one at a time: REQUIRES the runtime's mapping lock, or two of them could
// wait for each other.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

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

  // Evicts the pages and keeps them out, so that their bytes can change in the store: who touches
  // one waits. REQUIRES: unblock() soon. Errors: EBUSY (pinned, or touched all the time), those of
  // a write-back; then none is blocked.
  Status evict_and_block(PageCache& cache, uint64_t first, uint64_t end);
  void unblock(PageCache& cache, uint64_t first, uint64_t end);
  // Puts views of parts of its addresses, sorted, in the place of a view; the kernel's mappings
  // stay. `between` runs when nobody faults through the old one any more and what the parts leave
  // out is blocked. Errors: as evict_and_block, and then nothing has changed.
  Status swap_view(PageCache& cache, region::View* old, std::span<region::View* const> parts,
                   const std::function<void()>& between);

 private:
  Status replace_view(PageCache& cache, region::View* old, std::span<region::View* const> parts);
  Status insert_parts(PageCache& cache, std::span<region::View* const> parts);
  void hand_on_shown(PageCache& cache, const region::View& old,
                     std::span<region::View* const> parts);

  Pager& pager_;
  Ranges& ranges_;
  ViewList& views_;
  PrefetchQueue& queue_;
};

}  // namespace outcore::paging
