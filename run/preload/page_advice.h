// PageAdvice: what madvise does with the pages of a view, for files and for the heap. Any thread of
// the program, with signals blocked.
#pragma once

#include "core/paging/engine.h"

namespace outcore::preload {

// For pages [first, end) of the view's page cache. 0 or an errno. EINVAL: an advice that is not
// handled here: DONTNEED, REMOVE and the access patterns, which files and the heap treat
// differently.
int advise_pages(paging::Engine& engine, region::View& view, uint64_t first, uint64_t end,
                 int advice);
// Makes the pages resident. 0 or an errno.
int fill_pages(paging::Engine& engine, region::View& view, uint64_t first, uint64_t end);

}  // namespace outcore::preload
