// NamedFile: a file, whatever number it is open by. A program may close any descriptor, and have
// another file of its own there. The fault path.
#pragma once

#include <sys/stat.h>

#include <cstdint>

namespace outcore::buffer {

struct NamedFile {
  uint64_t device = 0, inode = 0;

  // *about: what the kernel says of the descriptor, if it names this file.
  bool is_named_by(int fd, struct stat* about) const {
    return ::fstat(fd, about) == 0 && about->st_ino == inode && about->st_dev == device;
  }
};

}  // namespace outcore::buffer
