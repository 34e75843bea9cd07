// Flusher: dirty bytes of resident pages go to the store while the program goes on; and what a call
// says of those that could not be stored.
//
// Calls of the program, with signals blocked. Pages are the cache's.
#pragma once

#include <cstdint>
#include <span>

#include "core/paging/flush_work.h"
#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class Flusher {
 public:
  explicit Flusher(Pager& pager) : pager_(pager) {}

  // Errors: of this flush, or of an earlier write-back that nobody was told of.
  Status flush(PageCache& cache, uint64_t first, uint64_t end, OnTimeout on_timeout);
  // The same for somebody who is not the program: errors of earlier write-backs stay for it.
  Status flush_aside(PageCache& cache, uint64_t first, uint64_t end);
  // The same for these pages; adds to *stored_bytes. Errors of earlier write-backs stay for the
  // next flush: what could not be written is dirty still.
  Status flush_listed(PageCache& cache, std::span<const uint64_t> pages, uint64_t* stored_bytes);

 private:
  Pager& pager_;
};

}  // namespace outcore::paging
