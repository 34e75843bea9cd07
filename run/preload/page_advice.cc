#include "run/preload/page_advice.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

namespace outcore::preload {

// The prefetch threads bring in the next pages, many in a transfer. A page that they could not
// bring in, or that was evicted again, is brought in here, by itself.
int fill_pages(paging::Engine& engine, region::View& view, uint64_t first, uint64_t end) {
  constexpr uint64_t kAheadBytes = 256 << 10;
  const uint64_t ahead = std::max<uint64_t>(kAheadBytes / view.cache->page_bytes, 1);
  for (uint64_t page = first; page < end; ++page) {
    if ((page - first) % ahead == 0) {
      const uint64_t from = page == first ? page + 1 : page + ahead;
      const uint64_t to = std::min(end, page + 2 * ahead);
      if (from < to) engine.prefetch(view, from, 1, to - from);
    }
    if (const int r = engine.bring_in(view, page); r != 0) return -r;
  }
  return 0;
}

int advise_pages(paging::Engine& engine, region::View& view, uint64_t first, uint64_t end,
                 int advice) {
  paging::PageCache& cache = *view.cache;
  switch (advice) {
    case MADV_WILLNEED:
      engine.prefetch(view, first, 1, end - first);
      return 0;
    case MADV_POPULATE_READ:
    case MADV_POPULATE_WRITE:
      return fill_pages(engine, view, first, end);
    case MADV_COLD:
      engine.make_cold(cache, first, end);
      return 0;
    case MADV_PAGEOUT:
      return engine.evict(cache, first, end).code();
    case MADV_DOFORK:  // this and the following do not concern the bytes
    case MADV_DONTDUMP:
    case MADV_DODUMP:
    case MADV_HUGEPAGE:
    case MADV_NOHUGEPAGE:
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
    case MADV_KEEPONFORK:
      return 0;
    default:
      return EINVAL;
  }
}

}  // namespace outcore::preload
