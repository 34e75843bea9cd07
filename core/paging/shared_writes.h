// SharedWrites: this process's record of writes to one cache of a buffer. See shared_writer.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/os/wait.h"
#include "core/os/word.h"
#include "core/paging/touch_runs.h"

namespace outcore::paging {

struct SharedWrites {
  // The run that is being stored, encoded as buffer::PageReport; 0: none. And how often that
  // changed.
  os::Word<uint64_t> storing{0};
  os::Word<uint32_t> changes{0};
  os::Word<uint32_t> waiters{0};    // threads that wait for a change
  os::Word<uint32_t> marking{0};    // threads that mark a page
  os::Word<uint64_t> own_pages{0};  // pages that this process has marked
  // How many pages became clean since the start; how often kCleanedTogether more did; and how many
  // threads wait for that because much is written.
  os::Word<uint32_t> cleaned{0}, cleanings{0}, share_waiters{0};
  os::Word<int> last_error{0};    // -errno of the last write to the store; 0: it succeeded
  os::Word<uint32_t> flushes{0};  // calls that are storing everything now
  // How many of own_pages are pinned, and do not become clean; and when they were counted.
  os::Word<uint64_t> own_pinned{0};
  uint64_t pins_counted_ns = 0;  // the thread that stores
  os::Lock views;                // held while views are removed or protected
  uint64_t next_page = 0;        // where the thread goes on
  TouchRuns read, written;       // of pages that are in memory
};

// Announces the run that this thread stores; only one thread of the process stores at a time. For
// the length of a scope.
class Storing {
 public:
  Storing(SharedWrites& writes, uint64_t first, uint64_t count);
  ~Storing();
  Storing(const Storing&) = delete;
  Storing& operator=(const Storing&) = delete;

 private:
  SharedWrites& writes_;
};

// Waits until `changes` differs from `seen`, at most wait_ns.
void wait_for_change(SharedWrites& writes, uint32_t seen, uint64_t wait_ns);

// Notes that pages became clean. Threads that wait for that are woken once for kCleanedTogether
// pages.
inline constexpr uint32_t kCleanedTogether = 32;
void note_cleaned(SharedWrites& writes, uint64_t pages);

// Announces that this thread marks the page; waits first if it is being stored. Until
// writes.marking is lowered again no thread begins to store it.
void begin_marking(SharedWrites& writes, uint64_t page);
// Whether some of the pages are being stored. After begin_marking() no thread begins to store more.
bool is_any_stored(const SharedWrites& writes, uint64_t first, uint64_t end);

}  // namespace outcore::paging
