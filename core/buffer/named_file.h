// NamedFile: identifies a file by device and inode, because a program may close any descriptor, and
// open another file under the same number. The fault path.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace outcore::buffer {

struct NamedFile {
  uint64_t device = 0, inode = 0;

  // Whether the descriptor is open on this file. *about: the result of fstat().
  bool is_named_by(int fd, struct stat* about) const {
    return ::fstat(fd, about) == 0 && about->st_ino == inode && about->st_dev == device;
  }
};

}  // namespace outcore::buffer
