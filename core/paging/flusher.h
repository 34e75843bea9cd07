// Flusher: writes dirty bytes of resident pages to the store while the program runs, and reports
// what could not be stored.
//
// Called by calls of the program, with signals blocked. Page numbers are the cache's.
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

  // Errors: those of this flush, or of an earlier write-back that were not returned by a call yet.
  Status flush(PageCache& cache, uint64_t first, uint64_t end, OnTimeout on_timeout);
  // As flush(), for callers other than the program: errors of earlier write-backs are left for the
  // program's next flush.
  Status flush_aside(PageCache& cache, uint64_t first, uint64_t end);
  // As flush_aside(), for these pages; adds to *stored_bytes. Pages that could not be written stay
  // dirty.
  Status flush_listed(PageCache& cache, std::span<const uint64_t> pages, uint64_t* stored_bytes);

 private:
  Pager& pager_;
};

}  // namespace outcore::paging
