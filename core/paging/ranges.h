// Ranges: what becomes of the pages of a range, whoever asks: evicted, cold, or read once more.
//
// Calls of the program, with signals blocked. Pages are the cache's.
#pragma once

#include <cstdint>

#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class Ranges {
 public:
  explicit Ranges(Pager& pager) : pager_(pager) {}

  // Evicts what is resident and not pinned. Pages in other hands are waited for, and tried again:
  // but not for ever, as other threads may touch them all the time. Errors: those of write-backs.
  Status evict(PageCache& cache, uint64_t first, uint64_t end);
  // They are the next victims.
  void make_cold(PageCache& cache, uint64_t first, uint64_t end);
  // Evicts pages that are zeros because their read failed: the next touch reads the store again.
  // Errors: EBUSY (one is pinned).
  Status retry_zeroed(PageCache& cache, uint64_t first, uint64_t end);
  // The cache has just become writable: afterwards it has no such page, and gets none. A page may
  // have been shown before its state says so: its filler is about to finish.
  Status end_zeroed(PageCache& cache);

 private:
  Pager& pager_;
};

}  // namespace outcore::paging
