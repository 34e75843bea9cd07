// FileLock: who has a heap open: one writer or any number of readers. It is an advisory lock
// (flock) of the heap's file or folder, and ends with the process. Any thread.
#pragma once

#include <sys/types.h>

#include <string>

#include "outcore/result.h"

namespace outcore::heap::persistent {

class FileLock {
 public:
  FileLock() = default;  // locks nothing
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  ~FileLock();

  // Errors: EBUSY (the heap is open elsewhere), and those of the system, with the path.
  static Result<FileLock> lock(const std::string& path, bool is_exclusive);

  // "device:inode" of the locked file, as Store::identity(); "": nothing is locked.
  std::string identity() const;
  int fd() const { return fd_; }  // -1: nothing is locked

 private:
  int fd_ = -1;
  pid_t process_ = 0;  // a forked child must not unlock what its parent has locked
};

}  // namespace outcore::heap::persistent
