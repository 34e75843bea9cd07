// How a pool ends, and who is told if its last commit fails.
#include <cerrno>
#include <cstdio>

#include "checkpoints/pool/pool.h"
#include "core/base/assert.h"
#include "core/base/error.h"

namespace outcore::versioned {

Pool::~Pool() {
  const Status status = close();
  if (status.ok()) return;
  if (has_stores_ && !is_loss_told_)
    std::fprintf(stderr, "outcore: what was written to %s since its last commit is lost: %s\n",
                 folder_.c_str(), status.message().c_str());
  drop_uncommitted();
}

Status Pool::close() {
  // In a forked child another thread of the parent may have held the lock: it would stay locked for
  // ever.
  if (!disk_->is_of_this_process()) return {};
  const std::lock_guard guard(mutex_);
  if (is_closed_) return {};
  if (lost_.code == 0 && has_changes())
    if (const auto done = commit_locked({}, {}); !done) {
      is_closed_ = lost_.code != 0;  // if it is still open, the caller may try again
      return done.error();
    }
  is_closed_ = true;
  if (lost_.code != 0) return lost_;
  journal_->append(RecordType::kClosed, last_commit_, {}, {true, true});  // an error does no harm
  return {};
}

// Nothing of it can be found again, so its space goes back to a disk that may be full. REQUIRES:
// nobody uses the pool any more.
void Pool::drop_uncommitted() {
  const std::lock_guard guard(mutex_);
  if (lost_.code != 0) return;  // the disk may contain a commit that needs it
  OC_ASSERT(journal_ != nullptr && !journal_->is_broken());
  for (const auto& [id, object] : objects_)
    object->map_->for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      if (entry.birth > last_commit_) heap_->free(entry.block);
    });
  heap_->give_back_groups();
}

Status Pool::end_writer(bool is_forced) {
  OC_CHECK(writer_count_.load() != 0);
  Status status;
  if (writer_count_.fetch_sub(1) > 1)
    status = is_lost_ ? can_commit() : Status();
  else if (const int error = sync(); error != 0)
    status = Error{-error, last_failure()};
  if (status.ok()) return status;
  if (is_forced)
    is_loss_told_ = true;
  else
    writer_count_.fetch_add(1);
  return status;
}

}  // namespace outcore::versioned
