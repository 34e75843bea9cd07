// FileLock: who has a heap open: one writer, or any number of readers. An advisory lock (flock) on
// the heap's file or folder, which ends with the process. Any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "outcore/result.h"

namespace outcore::heap::persistent {

class FileLock {
 public:
  FileLock() = default;  // none
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // Errors: EBUSY (open elsewhere), what the system says of the path.
  static Result<FileLock> take(const std::string& path, bool is_exclusive);

  // "device:inode" of what is locked, as Store::identity() of a file; "": nothing is.
  std::string identity() const;
  int fd() const { return fd_; }  // -1: nothing is locked

 private:
  int fd_ = -1;
  pid_t process_ = 0;  // a forked child must not unlock what is its parent's
};

}  // namespace outcore::heap::persistent
