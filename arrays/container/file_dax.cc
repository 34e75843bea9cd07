// How bytes are written to a file that is persistent memory. See file_storage.h.
//
// No call leaves a drain to a later sync: processes that write together have caches of their own,
// and no process can drain what another one has stored. With MAP_SYNC nothing else is left to it
// either; without, what the filesystem has to know is, as of files: any process can sync that.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "arrays/container/file_storage.h"
#include "core/base/error.h"

namespace outcore::arrays {

// With MAP_SYNC, makes durable what the filesystem has just been told: a length, space, zeros. The
// kernel does that by itself only for pages that are written through the mapping. The range is new
// space. Without, sync() does it.
Status FileStorage::settle(uint64_t offset, uint64_t size_bytes) {
  if (memory_ == nullptr || !memory_->is_synchronous()) return {};
  if (size_bytes > 0) memory_->prepare(offset, size_bytes);
  if (const int lost = lost_sync_; lost != 0) return base::system_error(lost, "sync " + path_);
  return sync_file();
}

Status FileStorage::sync_file() {
  if (FileMemory::kernel.sync(fd_) == 0) return {};
  const int error = errno;
  if (error != EINTR) lost_sync_ = error;
  return base::system_error(error, "sync " + path_);
}

bool FileStorage::is_within(uint64_t first, const Runs& runs) const {
  return first + runs.there + runs.span_bytes() <= size_bytes();
}

// The range may have no space yet: it may lie behind the end, or be a hole. Storing into a hole of
// a full filesystem would raise SIGBUS.
Status FileStorage::write_to_memory(uint64_t offset, std::span<const std::byte> from) {
  if (from.empty()) return {};
  const auto at = static_cast<off_t>(offset), size = static_cast<off_t>(from.size());
  const uint64_t old_end = size_bytes();
  if (::fallocate(fd_, 0, at, size) != 0) return failed(errno, "write", offset, from.size());
  if (offset + from.size() > old_end)
    if (Status s = settle(); !s) return s;
  const int error = memory_->write(offset, from.data(), from.size());
  drain();
  return error == 0 ? Status() : failed(error, "write", offset, from.size());
}

// REQUIRES: space was provided for what is written.
Status FileStorage::runs_of_memory(Way way, uint64_t first, const Runs& runs, std::byte* bytes) {
  const bool is_write = way == Way::kWrite;
  const int error =
      !is_within(first, runs) ? EIO : for_each_run(runs, [&](uint64_t there, uint64_t here) {
        return is_write ? memory_->write(first + there, bytes + here, runs.run_bytes)
                        : memory_->read(first + there, bytes + here, runs.run_bytes);
      });
  if (is_write) drain();
  if (error == 0) return {};
  return failed(error, is_write ? "write" : "read", first + runs.there, runs.span_bytes());
}

}  // namespace outcore::arrays
