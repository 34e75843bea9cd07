#include "core/paging/fault_reason.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/paging/write_stall.h"

namespace outcore::paging {
namespace {

thread_local char fault_reason[512];

}  // namespace

void explain(const PageCache& cache, uint64_t page, const std::byte* address, int error) {
  const uint64_t offset = page * cache.page_bytes;
  const char* why = ::strerrordesc_np(-error);
  const int write_error = cache.write_failures.unreported_code();
  char of_memory[160];
  if (error == -ENOMEM) {
    std::snprintf(
        of_memory, sizeof of_memory, "no memory within wait_max: %s%s",
        write_error == 0 ? "all of the budget is in use" : "pages cannot be written back: ",
        write_error == 0 ? "" : ::strerrordesc_np(write_error));
    why = of_memory;
  } else if (WriteStall::is_of_space(error)) {
    std::snprintf(
        of_memory, sizeof of_memory,
        "no memory: all of the budget holds written pages that cannot be stored: %s; make "
        "room in their store, or give a larger budget",
        ::strerrordesc_np(-error));
    why = of_memory;
  }
  std::snprintf(fault_reason, sizeof fault_reason,
                "outcore: touch of %p: fill of %llu bytes at %llu of %s: %s",
                static_cast<const void*>(address),
                static_cast<unsigned long long>(cache.page_bytes),
                static_cast<unsigned long long>(offset), cache.uri.c_str(), why);
}

const char* last_fault_reason() { return fault_reason; }

void end_for_fault(const char* addition) {
  for (const char* text : {static_cast<const char*>(fault_reason), addition, "\n"}) {
    const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
    static_cast<void>(ignored);
  }
  std::abort();
}

}  // namespace outcore::paging
