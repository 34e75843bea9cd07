#include "run/preload/page_advice.h"

#include <sys/mman.h>

#include <cerrno>

namespace outcore::preload {

int fill_pages(paging::Engine& engine, region::View& view, uint64_t first, uint64_t end) {
  for (uint64_t page = first; page < end; ++page)
    if (const int r = engine.bring_in(view, page, nullptr, false, paging::Caller::kThread); r != 0)
      return -r;
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
    case MADV_DOFORK:  // of no concern to bytes
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
