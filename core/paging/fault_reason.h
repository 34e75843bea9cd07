// Why the last fill of this thread failed: one line. The fault path.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/paging/page_cache.h"

namespace outcore::paging {

// Makes the line for a touch of `address`, whose fill ended with -errno.
void explain(const PageCache& cache, uint64_t page, const std::byte* address, int error);
const char* last_fault_reason();
// Writes the line, and what is to be added to it, to standard error, and aborts.
[[noreturn]] void end_for_fault(const char* addition);

}  // namespace outcore::paging
