// The end of the process: what was written is stored, and what was learnt is kept. See door.h.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/runtime/learnt_starts.h"
#include "core/runtime/sharing.h"
#include "run/preload/door.h"
#include "run/preload/last_store.h"
#include "run/preload/words.h"

namespace outcore::preload {

using base::round_up;
using paging::PageCache;

// Stores in pieces, so that a thread that waits sees the progress. REQUIRES: `lock_` is locked.
void Door::store_pieces(TakenFile& file) {
  OC_CHECK(file.cache() != nullptr);
  constexpr uint64_t kPieceBytes = 16 << 20;
  PageCache& cache = *file.cache();
  const uint64_t piece = std::max<uint64_t>(kPieceBytes / cache.page_bytes, 1);
  const uint64_t end = std::min(
      round_up(cache.store_bytes.load(), cache.page_bytes) / cache.page_bytes, cache.page_count());
  for (uint64_t page = 0; page < end; page += piece) {
    // What cannot be stored is reported when the file is handed back.
    if (!runtime_->engine->evict(cache, page, std::min(page + piece, end)).ok()) return;
    LastStore::note_progress();
  }
}

// A file that cannot be stored is reported once, although several places try the same end.
// `may_stay`: a file that others write, too, stays theirs, and this process's until it is gone.
void Door::leave_writable(const char* why, bool may_stay) {
  if (is_of_another_process()) return;
  const Inside inside;
  const os::Locked locked(lock_);
  for (const auto& [identity, file] : files_) {
    if (!file->is_writable || file->mappings.empty()) continue;
    if (may_stay && file->is_together() && leave_to_others(*file)) {
      LastStore::note_progress();
      continue;
    }
    store_pieces(*file);
    const Status s = try_to_hand_back(*file, why);
    if (!s.ok() && std::exchange(file->loss_told_in, LastStore::attempt()) != LastStore::attempt())
      say(file->path + ": what the program wrote cannot be stored: " + ::strerrordesc_np(s.code()) +
              "; it is lost when the process ends",
          true);
    LastStore::note_progress();
  }
}

// Removes only the buffer's name: its mappings are needed until the last instruction.
void Door::leave_buffer() {
  const Inside inside;
  const os::Locked locked(lock_);
  if (runtime_ != nullptr && runtime_->sharing->buffer() != nullptr)
    runtime_->sharing->buffer()->member().remove_file_if_last();
}

void Door::store_all() {
  if (!is_any_taken() || is_of_another_process()) return;
  leave_writable("the process ends, or becomes another program", true);
}

// The files of profiles are locked and written without the door's lock: under it nothing may be
// locked that fork() stops before it (at_fork.h).
void Door::keep_learnt() {
  if (is_of_another_process()) return;
  const Inside inside;
  std::shared_ptr<Runtime::Impl> runtime;
  {
    const os::Locked locked(lock_);
    if (runtime_ == nullptr || !runtime_->learnt->learns_by_option() || kept_ == Kept::kFailed)
      return;
    runtime = runtime_;
  }
  Kept kept = Kept::kNothing;  // what may succeed later is tried again
  try {
    const Status s = runtime->learnt->keep(false);
    if (s.ok())
      kept = Kept::kAll;
    else if (s.code() != EAGAIN)
      kept = Kept::kFailed;
    if (!s.ok()) say(s.message(), kept == Kept::kFailed);
  } catch (const std::bad_alloc&) {
    say("what was learnt cannot be kept: no memory is left");
  }
  const os::Locked locked(lock_);
  kept_ = kept;
}

}  // namespace outcore::preload
