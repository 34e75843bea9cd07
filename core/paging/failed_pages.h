// Failed pages: pages whose fill failed, and the poison that makes a touch of one fail (SIGBUS).
// Any thread, with signals blocked; poison_page() is the fault path's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/paging/page_cache.h"
#include "core/region/view.h"

namespace outcore::paging {

// Makes a touch of the address fail, whose fill ended with `error` (-errno). Whoever touched sleeps
// in the kernel, perhaps in a system call, which no signal ends: only what is mapped there can.
// While the page is ours nobody fills it. What else made the fault fail (no memory, say) becomes
// the page's failure, so that the poison is forgotten before the next fill. False: the page has
// changed meanwhile, or the kernel refuses.
bool poison_page(region::View& view, uint64_t page, std::byte* address, int error);

// Makes those of [first, end) that are Failed Absent, in every view. False: the poison of some page
// stays, for want of a mapping.
bool retry_failed(PageCache& cache, uint64_t first, uint64_t end);

}  // namespace outcore::paging
