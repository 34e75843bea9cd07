#include "core/os/descriptor_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace outcore::os {

int (*place_descriptor)(int fd) = nullptr;

int above_standard(int fd) {
  if (fd < 0) return fd;
  if (place_descriptor != nullptr) fd = place_descriptor(fd);
  if (fd > STDERR_FILENO) return fd;
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return moved;
}

Descriptor::~Descriptor() {
  if (fd_ < 0) return;
  const int error = errno;
  ::close(fd_);
  errno = error;
}

}  // namespace outcore::os
