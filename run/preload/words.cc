#include "run/preload/words.h"

#include <limits.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "core/base/plain_text.h"
#include "run/preload/real.h"
#include "run/preload/settings.h"

namespace outcore::preload {

void say(const std::string& text, bool is_grave) {
  if (settings().is_quiet && !is_grave) return;
  const std::string line = "outcore: " + base::one_line(text) + "\n";
  const int saved_errno = errno;
  const ssize_t ignored = real().write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(ignored);
  errno = saved_errno;
}

std::string program_name() {
  char path[PATH_MAX];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string whole(path, n <= 0 ? 0 : static_cast<size_t>(n));
  return whole.substr(whole.rfind('/') + 1);
}

}  // namespace outcore::preload
