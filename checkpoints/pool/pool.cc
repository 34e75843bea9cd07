#include "checkpoints/pool/pool.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "checkpoints/pool/batch_writer.h"
#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::versioned {

Result<std::shared_ptr<Pool>> Pool::open(std::shared_ptr<Disk> disk, const PoolOptions& options) {
  std::shared_ptr<Pool> pool(new Pool(std::move(disk), options));
  if (Status s = PoolOpener(pool->pool_, pool->journals_).open(options); !s) return s.error();
  return pool;
}

Pool::~Pool() {
  const Status status = close();
  if (status.ok()) return;
  if (has_stores_ && !is_loss_told_)
    std::fprintf(stderr, "outcore: what was written to %s since its last commit is lost: %s\n",
                 pool_.folder.c_str(), status.message().c_str());
  drop_uncommitted();
}

Status Pool::close() {
  // In a forked child another thread of the parent may have held the lock: it would stay locked for
  // ever.
  if (!pool_.disk->is_of_this_process()) return {};
  const std::lock_guard guard(pool_.mutex);
  if (pool_.is_closed) return {};
  if (pool_.lost.code == 0 && pool_.has_changes())
    if (const auto done = committer_.commit_locked({}, {}); !done) {
      pool_.is_closed = pool_.lost.code != 0;  // if it is still open, the caller may try again
      return done.error();
    }
  pool_.is_closed = true;
  if (pool_.lost.code != 0) return pool_.lost;
  journals_.append_closed();
  return {};
}

// Nothing of it can be found again, so its space goes back to a disk that may be full. REQUIRES:
// nobody uses the pool any more.
void Pool::drop_uncommitted() {
  const std::lock_guard guard(pool_.mutex);
  if (pool_.lost.code != 0) return;  // the disk may contain a commit that needs it
  OC_ASSERT(!journals_.is_broken());
  for (const auto& [id, object] : pool_.objects)
    object->map().for_each(0, UINT64_MAX, [&](uint64_t, Entry entry) {
      if (entry.birth > pool_.last_commit) pool_.heap->free(entry.block);
    });
  pool_.heap->give_back_groups();
}

Status Pool::end_writer(bool is_forced) {
  OC_CHECK(writer_count_.load() != 0);
  const bool is_last = writer_count_.fetch_sub(1) == 1;
  // Also if there is no memory for the message: who could not end is still a writer.
  struct Outcome {
    Pool& pool;
    bool has_ended = false;
    ~Outcome() {
      if (!has_ended) pool.writer_count_.fetch_add(1);
    }
  } outcome{*this};
  Status status;
  if (!is_last)
    status = pool_.is_lost ? can_commit() : Status();
  else if (const int error = sync(); error != 0)
    status = Error{-error, last_failure()};
  outcome.has_ended = status.ok() || is_forced;
  if (!status.ok() && is_forced) is_loss_told_ = true;
  return status;
}

int Pool::read(Object& object, uint64_t offset, std::span<std::byte> into) {
  if (object.is_removed()) return -ENOENT;
  if (!object.contains(offset, into.size())) return -ENXIO;
  const int error = pool_.reader->read(object.map(), object.name().c_str(), offset, into);
  return object.is_removed() ? -ENOENT : error;
}

int Pool::write(Object& object, uint64_t offset, std::span<const std::byte> from) {
  if (const int error = pool_.check_writable(object); error != 0) return error;
  if (!object.contains(offset, from.size())) return -ENXIO;
  const int error = writer_.write(object, offset, from);
  if (error != 0 && error != -EIO) pool_.note(error, "write", object);
  return error;
}

void Pool::transfer(Object& object, std::span<StoreRequest> batch) {
  bool has_read = false, has_write = false, is_right = true;
  for (StoreRequest& r : batch) {
    (r.is_write ? has_write : has_read) = true;
    is_right = is_right && object.contains(r.offset, r.size_bytes);
  }
  int error = object.is_removed() ? -ENOENT : 0;
  if (error == 0 && has_write) error = pool_.check_writable(object);
  if (error != 0) {
    for (StoreRequest& r : batch) r.result = error;
    return;
  }
  if (!is_right) {  // the object has become smaller: each request gets its own result
    for (StoreRequest& r : batch)
      r.result = r.is_write ? write(object, r.offset, {r.bytes, r.size_bytes})
                            : read(object, r.offset, {r.bytes, r.size_bytes});
    return;
  }
  if (has_read) pool_.reader->transfer(object.map(), object.name().c_str(), batch);
  for (StoreRequest& r : batch)
    if (!r.is_write && object.is_removed()) r.result = -ENOENT;
  if (!has_write) return;
  BatchWriter(pool_, writer_, object).write(batch);
  for (const StoreRequest& r : batch)
    if (r.is_write && r.result != 0 && r.result != -EIO)
      return pool_.note(r.result, "write", object);
}

int Pool::discard(Object& object, uint64_t offset, uint64_t size_bytes) {
  if (const int error = pool_.check_writable(object); error != 0) return error;
  if (!object.contains(offset, size_bytes)) return -ENXIO;
  const int error = writer_.discard(object, offset, size_bytes);
  if (error != 0 && error != -EIO) pool_.note(error, "discard a part of", object);
  return error;
}

bool Pool::is_hole(const Object& object, uint64_t offset, uint64_t size_bytes) const {
  const uint64_t end = base::round_up(offset + size_bytes, pool_.chunk_bytes) / pool_.chunk_bytes;
  bool is_empty = true;
  for (uint64_t chunk = offset / pool_.chunk_bytes; chunk < end && is_empty; ++chunk)
    is_empty = object.map().get(chunk).block == 0;
  return is_empty;
}

uint32_t Pool::last_commit() const {
  const std::lock_guard guard(pool_.mutex);
  return pool_.last_commit;
}

bool Pool::is_valid() const {
  const std::lock_guard guard(pool_.mutex);
  return pool_.is_valid();
}

Usage Pool::usage() const {
  const std::lock_guard guard(pool_.mutex);
  Usage usage;
  usage.chunk_bytes = pool_.chunk_bytes;
  usage.file_bytes = pool_.heap->capacity() * pool_.chunk_bytes;
  const uint64_t used_bytes = pool_.heap->used_count() * pool_.chunk_bytes;
  uint64_t live_count = 0;
  for (const auto& [id, object] : pool_.objects) {
    object->map().for_each(0, UINT64_MAX, [&](uint64_t, Entry) { ++live_count; });
    usage.map_bytes += object->map().memory_bytes();
  }
  usage.live_bytes = live_count * pool_.chunk_bytes;
  usage.held_bytes = used_bytes - std::min(used_bytes, usage.live_bytes);
  usage.free_bytes = usage.file_bytes - std::min(usage.file_bytes, used_bytes + pool_.chunk_bytes);
  return usage;
}

}  // namespace outcore::versioned
