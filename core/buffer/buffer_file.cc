#include "core/buffer/buffer_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/os/file_lock.h"

namespace outcore::buffer {

uint64_t inode_of(int fd) {
  struct stat about;
  return ::fstat(fd, &about) == 0 ? about.st_ino : 0;
}

// Not before it is known what it is: to open a terminal or a pipe has effects.
int open_of_process(int32_t process, int of, int flags,
                    const std::function<bool(const struct stat&)>& is_it) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(of);
  struct stat about;
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode) || !is_it(about)) return -1;
  const int fd = os::open_to_lock(AT_FDCWD, path.c_str(), flags | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || (::fstat(fd, &about) == 0 && is_it(about))) return fd;
  os::close_locked(fd);
  return -1;
}

// A process of another PID namespace, or one that took the number of a dead one, has others.
MemoryFiles open_memory_of(const Header& header, const Slot& slot) {
  const auto open = [&](int fd, uint64_t inode) {
    return open_of_process(slot.process, fd, O_RDWR,
                           [inode](const struct stat& about) { return about.st_ino == inode; });
  };
  MemoryFiles files{open(slot.board_fd, header.board_inode),
                    open(slot.frames_fd, header.frames_inode),
                    open(slot.marks_fd, header.marks_inode)};
  if (files.are_there()) return files;
  files.close();
  return {};
}

void MemoryFiles::close() const {
  for (const int fd : {board, frames, marks})
    if (fd >= 0) os::close_locked(fd);
}

}  // namespace outcore::buffer
