// SharedWrites: what this process knows of the writes to one cache of a buffer. See
// shared_writer.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/os/wait.h"

namespace outcore::paging {

struct SharedWrites {
  // The run that is being stored, as buffer::News has it; 0: none. And how often that changed.
  std::atomic<uint64_t> storing{0};
  std::atomic<uint32_t> changes{0};
  std::atomic<uint32_t> marking{0};    // threads that mark a page
  std::atomic<uint64_t> own_pages{0};  // that are marked by this process
  std::atomic<int> last_error{0};      // -errno of the last store that failed; 0: it did not
  os::Lock views;                      // while views go, or are protected
  uint64_t next_page = 0;              // where the thread goes on
};

}  // namespace outcore::paging
