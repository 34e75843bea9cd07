#include "heaps/persistent/persistent_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/base/error.h"
#include "core/os/file_lock.h"

namespace outcore::heap::persistent {

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), process_(other.process_) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(process_, other.process_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ < 0 || process_ != ::getpid()) return;  // a forked child has closed it
  // A child that has the descriptor nevertheless (made by clone, not fork) would keep the lock.
  ::flock(fd_, LOCK_UN);
  os::close_locked(fd_);
}

Result<FileLock> FileLock::lock(const std::string& path, bool is_exclusive) {
  FileLock lock;
  const int flags = O_NONBLOCK | O_NOCTTY;
  // Network filesystems lock exclusively only what is open for writing.
  int fd = os::open_to_lock(AT_FDCWD, path.c_str(), (is_exclusive ? O_RDWR : O_RDONLY) | flags);
  if (fd == -EISDIR) fd = os::open_to_lock(AT_FDCWD, path.c_str(), O_RDONLY | flags);
  if (fd < 0)
    return base::system_error(-fd, "open the heap " + path,
                              fd == -ENOENT ? "check the path, or create it first"
                              : fd == -EROFS
                                  ? "open it read-only, or copy it to where you may write"
                              : fd == -EMFILE ? "raise the limit of open files (ulimit -n)"
                              : fd != -EACCES && fd != -EPERM ? ""
                              : is_exclusive ? "get write permission, or open it read-only"
                                             : "get read permission");
  lock.fd_ = fd;
  lock.process_ = ::getpid();
  const int error = os::lock_file(fd, is_exclusive);
  if (error == 0) return lock;
  if (error != -EWOULDBLOCK) return base::system_error(-error, "lock the heap " + path);
  return Error{EBUSY,
               "open the heap " + path +
                   (is_exclusive ? ": it is open elsewhere" : ": it is open elsewhere to write") +
                   ": close it there first"};
}

std::string FileLock::identity() const { return os::identity_of(fd_); }

}  // namespace outcore::heap::persistent
