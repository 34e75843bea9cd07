#include "run/preload/own_descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "run/preload/real.h"

namespace outcore::preload {
namespace {

std::atomic<uint64_t> marks[OwnDescriptors::kDescriptorsMax / 64];

// Our lowest number: above those that most programs use, but not higher, because a forked child's
// table is as large as the highest number.
int first_own() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto soft = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 1 << 16));
  return std::min(256, soft / 4 * 3);
}

constinit thread_local int takers = 0;  // how many LowNumbersTaken this thread has

int first_own_once() {
  static const int first = first_own();
  return first;
}

}  // namespace

int OwnDescriptors::keep(int fd) {
  if (fd < 0) return fd;
  const int saved_errno = errno;
  const int first = first_own_once();
  int kept = fd;
  if (fd < first && takers == 0) {
    const int moved = real().fcntl(fd, F_DUPFD_CLOEXEC, first);
    if (moved >= 0) {
      real().close(fd);
      kept = moved;
    }
  }
  mark(kept);
  errno = saved_errno;
  return kept;
}

void OwnDescriptors::mark(int fd) {
  if (fd >= 0 && fd < kDescriptorsMax)
    marks[fd / 64].fetch_or(uint64_t{1} << (fd % 64), std::memory_order_relaxed);
}

bool OwnDescriptors::has(int fd) {
  return fd >= 0 && fd < kDescriptorsMax &&
         (marks[fd / 64].load(std::memory_order_relaxed) >> (fd % 64) & 1) != 0;
}

LowNumbersTaken::LowNumbersTaken() {
  ++takers;
  const int first = first_own_once();
  for (int fd = real().open("/dev/null", O_PATH | O_CLOEXEC); fd >= 0;
       fd = real().fcntl(fd, F_DUPFD_CLOEXEC, 0)) {
    taken_.push_back(fd);
    if (fd >= first) return;
  }
}

LowNumbersTaken::~LowNumbersTaken() {
  --takers;
  for (const int fd : taken_) real().close(fd);
}

void OwnDescriptors::forget(int fd) {
  if (fd >= 0 && fd < kDescriptorsMax)
    marks[fd / 64].fetch_and(~(uint64_t{1} << (fd % 64)), std::memory_order_relaxed);
}

int OwnDescriptors::next(int from) {
  for (int fd = from; fd < kDescriptorsMax;) {
    const uint64_t rest = marks[fd / 64].load(std::memory_order_relaxed) >> (fd % 64);
    if (rest != 0) return fd + __builtin_ctzll(rest);
    fd = (fd / 64 + 1) * 64;
  }
  return kDescriptorsMax;
}

}  // namespace outcore::preload
