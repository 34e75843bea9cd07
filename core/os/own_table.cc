#include "core/os/own_table.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "core/base/assert.h"

namespace outcore::os {
namespace {

constexpr unsigned kCloseRangeUnshare = 2;

}  // namespace

// Calls are made by number: under `outcore run` the C library's functions are the program's view of
// its table.
OwnTable::OwnTable() {
  if (::syscall(SYS_close_range, 0u, UINT_MAX, kCloseRangeUnshare) == 0)
    process_ = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
}

int OwnTable::fetch(int fd) const {
  OC_CHECK(is_own() && fd >= 0);
  return static_cast<int>(::syscall(SYS_pidfd_getfd, process_, fd, 0));
}

bool OwnTable::fetch_as_it_is(int fd) const {
  const int fetched = fetch(fd);
  if (fetched < 0 || fetched == fd) return fetched == fd;
  const bool is_placed = ::syscall(SYS_dup3, fetched, fd, O_CLOEXEC) == fd;
  ::syscall(SYS_close, fetched);
  return is_placed;
}

}  // namespace outcore::os
