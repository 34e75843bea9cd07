#include "run/preload/claimed_bytes.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "run/preload/real.h"

namespace outcore::preload {

bool ClaimedBytes::claim(int fd, size_t size_bytes) {
  OC_CHECK(!is_claimed());
  size_bytes = std::min(size_bytes, kBytesMax);
  const off_t end = real().lseek(fd, static_cast<off_t>(size_bytes), SEEK_CUR);
  if (end < 0) return false;
  OC_CHECK(end >= static_cast<off_t>(size_bytes));
  fd_ = fd;
  offset_ = end - static_cast<off_t>(size_bytes);
  size_bytes_ = size_bytes;
  return true;
}

void ClaimedBytes::give_back(ssize_t transferred) {
  if (!is_claimed()) return;
  const size_t done = transferred < 0 ? 0 : static_cast<size_t>(transferred);
  OC_CHECK(done <= size_bytes_);
  const int error = errno;
  if (done < size_bytes_)
    static_cast<void>(real().lseek(fd_, -static_cast<off_t>(size_bytes_ - done), SEEK_CUR));
  errno = error;
  fd_ = -1;
}

}  // namespace outcore::preload
