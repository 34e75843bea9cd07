#include "run/preload/words.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "core/base/plain_text.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"

namespace outcore::preload {

namespace {

// The file of standard error when it was noted; 0: it was closed.
std::atomic<dev_t> error_device{0};
std::atomic<ino_t> error_inode{0};

}  // namespace

void note_standard_error() {
  struct stat about;
  const int saved_errno = errno;
  const bool is_open = ::fstat(STDERR_FILENO, &about) == 0;
  error_device.store(is_open ? about.st_dev : 0);
  error_inode.store(is_open ? about.st_ino : 0);
  errno = saved_errno;
}

void say_raw(const char* text, size_t bytes) {
  struct stat about;
  if (::fstat(STDERR_FILENO, &about) != 0) return;
  const bool is_as_noted =
      about.st_dev == error_device.load() && about.st_ino == error_inode.load();
  if (!is_as_noted && !S_ISCHR(about.st_mode) && !S_ISFIFO(about.st_mode)) return;
  const ssize_t ignored = real().write(STDERR_FILENO, text, bytes);
  static_cast<void>(ignored);
}

void say(const std::string& text, bool is_grave) {
  if (settings().is_quiet && !is_grave) return;
  const std::string line = "outcore: " + base::one_line(text) + "\n";
  const int saved_errno = errno;
  say_raw(line.data(), line.size());
  errno = saved_errno;
}

std::string program_name() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string whole(path, n <= 0 ? 0 : static_cast<size_t>(n));
  return whole.substr(whole.rfind('/') + 1);
}

}  // namespace outcore::preload
