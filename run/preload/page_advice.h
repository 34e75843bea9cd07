// PageAdvice: what madvise does with pages that a view shows, for files and for the heap alike.
// Any thread of the program, with signals blocked.
#pragma once

#include "core/paging/engine.h"

namespace outcore::preload {

// Pages [first, end) of the view's space. 0 or an errno; EINVAL: an advice that is not known here.
// DONTNEED, REMOVE and the ways of reading are not: they mean something else to each.
int advise_pages(paging::Engine& engine, region::View& view, uint64_t first, uint64_t end,
                 int advice);
// Makes them resident. 0 or an errno.
int fill_pages(paging::Engine& engine, region::View& view, uint64_t first, uint64_t end);

}  // namespace outcore::preload
