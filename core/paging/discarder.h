// Discarder: makes ranges of a cache read zero, in memory and in the store.
//
// Calls of the program, with signals blocked.
#pragma once

#include <cstdint>

#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class Discarder {
 public:
  explicit Discarder(Pager& pager) : pager_(pager) {}

  // Whole pages. While a page is ours (Filling or Dropping) nobody fills, rescues or writes it
  // back, so the store's bytes can change under it, and threads that touch it all the time cannot
  // keep it. They go in batches, those that are in memory and those that are not; where another
  // thread interferes, page by page.
  // Errors: EBUSY (one is pinned, or locked in memory), ENOMEM (no mapping is left), those of the
  // store.
  Status discard(PageCache& cache, uint64_t offset, uint64_t size_bytes);

 private:
  bool discard_batch(PageCache& cache, uint64_t first, uint64_t end, uint64_t* batch_end);

  Pager& pager_;
};

}  // namespace outcore::paging
