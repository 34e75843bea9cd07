#include "core/os/file_lock.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"
#include "core/os/parents_descriptors.h"
#include "core/os/wait.h"

namespace outcore::os {
namespace {

struct flock range_of(int type, uint64_t first, uint64_t count) {
  struct flock range {};
  range.l_type = static_cast<short>(type);
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(first);
  range.l_len = static_cast<off_t>(count);
  return range;
}

}  // namespace

int open_to_lock(int folder, const char* path, int flags, mode_t mode) {
  return ParentsDescriptors::open([&] {
    return repeat([&] { return above_standard(::openat(folder, path, flags | O_CLOEXEC, mode)); });
  });
}

void close_locked(int fd) { ParentsDescriptors::close(fd); }

int lock_file(int fd, bool is_exclusive) {
  return repeat([&] { return ::flock(fd, (is_exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB); });
}

int lock_bytes(int fd, int type, uint64_t first, uint64_t count, bool may_wait) {
  interleave();
  struct flock range = range_of(type, first, count);
  const int error =
      repeat([&] { return ::fcntl(fd, may_wait ? F_OFD_SETLKW : F_OFD_SETLK, &range); });
  return error == -EACCES ? -EAGAIN : error;
}

int find_lock(int fd, uint64_t first, uint64_t count, struct flock* found) {
  interleave();
  *found = range_of(F_WRLCK, first, count);
  return ::fcntl(fd, F_OFD_GETLK, found) == 0 ? 0 : -errno;
}

int find_locks(int fd, uint64_t first, uint64_t count, std::vector<uint64_t>* bytes) {
  if (count == 0) return 0;
  struct flock found;
  if (const int result = find_lock(fd, first, count, &found); result != 0) return result;
  if (found.l_type == F_UNLCK) return 0;
  const auto at = static_cast<uint64_t>(found.l_start);
  OC_CHECK(at >= first && at - first < count && found.l_len == 1);
  // It need not be the first of them.
  if (const int result = find_locks(fd, first, at - first, bytes); result != 0) return result;
  bytes->push_back(at);
  return find_locks(fd, at + 1, count - (at - first) - 1, bytes);
}

std::string identity_of(int fd) {
  struct stat about;
  if (fd < 0 || ::fstat(fd, &about) != 0) return {};
  return std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

}  // namespace outcore::os
