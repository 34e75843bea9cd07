#include "core/os/own_ring.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace outcore::os {

int set_up_own_ring(unsigned entries, io_uring_params* parameters) {
  const long fd = ::syscall(SYS_io_uring_setup, entries, parameters, 0L, 0L, 0L, kOwnRingMark);
  return fd < 0 ? -errno : static_cast<int>(fd);
}

}  // namespace outcore::os
