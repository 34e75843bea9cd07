#include "core/buffer/buffer_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/os/file_lock.h"

namespace outcore::buffer {

uint64_t inode_of(int fd) {
  struct stat about;
  return ::fstat(fd, &about) == 0 ? about.st_ino : 0;
}

namespace {

// Not before it is known what it is: to open a terminal or a pipe has effects.
int open_if(const std::string& path, uint64_t inode) {
  struct stat about;
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_ino != inode)
    return -1;
  const int fd = os::open_to_lock(AT_FDCWD, path.c_str(), O_RDWR | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || inode_of(fd) == inode) return fd;
  os::close_locked(fd);
  return -1;
}

}  // namespace

// A process of another PID namespace, or one that took the number of a dead one, has others.
MemoryFiles open_memory_of(const Header& header, const Slot& slot) {
  const std::string of = "/proc/" + std::to_string(slot.process) + "/fd/";
  MemoryFiles files{open_if(of + std::to_string(slot.board_fd), header.board_inode),
                    open_if(of + std::to_string(slot.frames_fd), header.frames_inode),
                    open_if(of + std::to_string(slot.marks_fd), header.marks_inode)};
  if (files.are_there()) return files;
  files.close();
  return {};
}

void MemoryFiles::close() const {
  for (const int fd : {board, frames, marks})
    if (fd >= 0) os::close_locked(fd);
}

}  // namespace outcore::buffer
