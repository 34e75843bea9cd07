// SharedWriteBack: stores marked pages of a buffer (buffer::Marks), so that they can leave memory.
//
// No two threads of this process store and mark a page at the same time: the storing thread
// announces the pages first, and waits for threads that are marking; a marking thread announces
// itself, and then checks whether the page is being stored.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/os/word.h"
#include "core/paging/shared_filler.h"
#include "core/paging/shared_writes.h"

namespace outcore::paging {

// Any thread; not the fault path. REQUIRES of all: cache.writes.
class SharedWriteBack {
 public:
  // kOwn: pages that this process marked or adopted. kFlushed: the same, and stops at the first
  // error. kAll: pages that any process marked, and stops at the first error.
  enum class Whose : uint8_t { kOwn, kFlushed, kAll };
  // A process is stopped while it punches pages there: they stay marked, and are to be tried again.
  // Not an error of the store.
  static constexpr int kLater = 1;

  explicit SharedWriteBack(SharedFiller& filler) : filler_(filler) {}

  static buffer::Marks& marks_of(const PageCache& cache);
  // Stores at most `most` pages of [first, end). *next: the page after the last one that it looked
  // at. 0 or -errno; kLater with kOwn only.
  int store(PageCache& cache, uint64_t first, uint64_t end, Whose whose, uint64_t most,
            uint64_t* next);
  // Stores a run of pages, those of them that are marked. *is_skipped: another process is storing
  // some of them now. 0, -errno or kLater. REQUIRES: at most run_pages_max() pages.
  int store_run(PageCache& cache, uint64_t first, uint64_t end, Whose whose, bool* is_skipped);
  uint64_t run_pages_max() const;
  // Pages of this process that became clean since the start: stored, or left to others to store.
  uint64_t cleaned() const { return cleaned_.load(std::memory_order_relaxed); }

 private:
  void hand_over(PageCache& cache, uint64_t first, uint64_t end);
  void note_clean(PageCache& cache, uint64_t pages);
  int write(PageCache& cache, uint64_t first, uint64_t end);
  static int protect(PageCache& cache, uint64_t first, uint64_t end);

  SharedFiller& filler_;
  os::Word<uint64_t> cleaned_{0};
};

}  // namespace outcore::paging
