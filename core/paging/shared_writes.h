// SharedWrites: what this process knows of the writes to one cache of a buffer. See
// shared_writer.h.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/os/wait.h"
#include "core/os/word.h"
#include "core/paging/touch_runs.h"

namespace outcore::paging {

struct SharedWrites {
  // The run that is being stored, as buffer::News has it; 0: none. And how often that changed.
  os::Word<uint64_t> storing{0};
  os::Word<uint32_t> changes{0};
  os::Word<uint32_t> waiters{0};    // threads that wait for a change
  os::Word<uint32_t> marking{0};    // threads that mark a page
  os::Word<uint64_t> own_pages{0};  // that are marked by this process
  // Pages that became clean, ever; how often kCleanedTogether more had; and how many threads wait
  // for that, as they have written much.
  os::Word<uint32_t> cleaned{0}, cleanings{0}, share_waiters{0};
  os::Word<int> last_error{0};    // -errno of the last store that failed; 0: it did not
  os::Word<uint32_t> flushes{0};  // calls that store everything just now
  // Of these, that are pinned, and do not become clean; and when they were counted.
  os::Word<uint64_t> own_pinned{0};
  uint64_t pins_counted_ns = 0;  // the thread that stores
  os::Lock views;                // while views go, or are protected
  uint64_t next_page = 0;        // where the thread goes on
  TouchRuns read, written;       // of pages that are in memory
};

// The run that this thread stores, alone in the process, for the length of a scope.
class Storing {
 public:
  Storing(SharedWrites& writes, uint64_t first, uint64_t count);
  ~Storing();
  Storing(const Storing&) = delete;
  Storing& operator=(const Storing&) = delete;

 private:
  SharedWrites& writes_;
};

// Until `changes` is not `seen` any more, for so long at most.
void wait_for_change(SharedWrites& writes, uint32_t seen, uint64_t wait_ns);

// Pages have become clean: whoever waits for that is woken for so many together, not for each.
inline constexpr uint32_t kCleanedTogether = 32;
void note_cleaned(SharedWrites& writes, uint64_t pages);

// Unless the page is being stored: after that. Until writes.marking is taken down again nobody
// begins to store it.
void begin_marking(SharedWrites& writes, uint64_t page);
// Whether some of the pages are being stored. Of others nobody begins to, after begin_marking().
bool is_any_stored(const SharedWrites& writes, uint64_t first, uint64_t end);

}  // namespace outcore::paging
