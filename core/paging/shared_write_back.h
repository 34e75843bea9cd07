// SharedWriteBack: stores marked pages of a buffer (buffer::Marks), so that they can leave memory.
//
// A page is stored and marked at the same time by nobody of this process: who stores says which
// pages first, and waits for those who are just marking; who marks says so first, and then looks
// whether the page is being stored.
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
  // What this process has marked, or taken on; the same until an error; what anybody has, likewise.
  enum class Whose : uint8_t { kOwn, kFlushed, kAll };
  // A process that takes pages out of memory there stands still: what is marked stays so, and is
  // tried again. No error of the store.
  static constexpr int kLater = 1;

  explicit SharedWriteBack(SharedFiller& filler) : filler_(filler) {}

  static buffer::Marks& marks_of(const PageCache& cache);
  // Of [first, end), at most `most` pages. *next: where it came to. 0 or -errno; kLater of kOwn
  // only.
  int store(PageCache& cache, uint64_t first, uint64_t end, Whose whose, uint64_t most,
            uint64_t* next);
  // Neighbours, of which there are marks. *is_skipped: another process is just storing some.
  // 0, -errno or kLater. REQUIRES: as many as run_pages_max() at most.
  int store_run(PageCache& cache, uint64_t first, uint64_t end, Whose whose, bool* is_skipped);
  uint64_t run_pages_max() const;
  // Pages, ever.
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
