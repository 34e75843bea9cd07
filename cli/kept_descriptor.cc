#include "cli/kept_descriptor.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace outcore::cli {

constexpr int kNumberMin = 900;  // above what programs number by hand
constexpr int kNumberMax = 1023;

int keep_descriptor(int fd) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const int last = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, kNumberMax + 1)) - 1;
  const int first = std::min(last, kNumberMin);
  // From the highest: F_DUPFD gives a larger one where `at` is taken.
  int moved = -1;
  for (int at = last; at >= first; --at) {
    if (moved != -1) ::close(moved);
    moved = ::fcntl(fd, F_DUPFD, at);
    if (moved == at) break;
  }
  if (moved == -1) {
    ::fcntl(fd, F_SETFD, 0);
    return fd;
  }
  ::close(fd);
  return moved;
}

}  // namespace outcore::cli
