// Freezer: makes changes of a whole cache during which none of its pages may be in memory: its
// frames are replaced, its store or a view has become longer, it is handed back to the kernel.
//
// Calls of the program, and of a prefetch thread (share_frames). A touch meanwhile waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/os/frames.h"
#include "core/paging/page_cache.h"
#include "core/paging/ranges.h"
#include "outcore/result.h"

namespace outcore::paging {

class Freezer {
 public:
  explicit Freezer(Ranges& ranges) : ranges_(ranges) {}

  // Replaces frames that only one view can show by others, with the pages evicted in between: a
  // second view comes. Errors: EBUSY (a page is pinned, or locked in memory), those of a write-back
  // and of the frames; then nothing has changed.
  Status replace_frames(PageCache& cache, std::unique_ptr<os::Frames> frames);
  // The store was found longer than it was: pages from its old end on are evicted, and shown anew.
  // Errors: EBUSY (one is pinned), those of a write-back.
  Status lengthen(PageCache& cache, uint64_t store_bytes);
  // Makes the view longer, over whatever is mapped there. The store has `store_bytes` now. Pages
  // that the store's old end cuts, or that lie past it, show zeros that are not the store's and may
  // have been written: those writes were never to be kept, so the pages leave while the store still
  // counts as short. A page that the view's old end cuts must come back whole. REQUIRES: the
  // runtime's mapping lock, or two changes could wait for each other.
  Status extend_view(PageCache& cache, region::View* view, uint64_t size_bytes,
                     uint64_t store_bytes);
  // Writes back and evicts everything, and keeps it so until resume(): who touches a page waits.
  // Errors: as replace_frames, and then nothing is kept.
  Status halt(PageCache& cache);
  void resume(PageCache& cache);
  // Writes back and evicts everything, and lets `place` put something else where the views are;
  // from then on the cache answers no fault. Errors: as replace_frames and what `place` says; then
  // nothing has changed. REQUIRES: as extend_view.
  Status hand_to_kernel(PageCache& cache, const std::function<Status()>& place);

 private:
  Status empty(PageCache& cache, uint64_t first, uint64_t last_end, const char* what);

  Ranges& ranges_;
};

}  // namespace outcore::paging
