#include "sight/commands/whole_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "cli/text.h"

namespace outcore::cli {
namespace {

// Of a pipe that is full. 0, or an errno: ETIMEDOUT if nobody reads for long.
int wait_for_reader(int file) {
  constexpr int kMsMax = 30'000;
  pollfd wanted{file, POLLOUT, 0};
  const int ready = ::poll(&wanted, 1, kMsMax);
  if (ready == 0) return ETIMEDOUT;
  return ready > 0 || errno == EINTR ? 0 : errno;
}

// A file that is larger than the process may write (ulimit -f) is an error, not the end.
class LargeFiles {
 public:
  LargeFiles() {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    ::sigaction(SIGXFSZ, &ignored, &before_);
  }
  ~LargeFiles() { ::sigaction(SIGXFSZ, &before_, nullptr); }
  LargeFiles(const LargeFiles&) = delete;
  LargeFiles& operator=(const LargeFiles&) = delete;

 private:
  struct sigaction before_ {};
};

const char* remedy_for(int error) {
  return error == EFBIG ? "raise the limit of the size of files (ulimit -f)"
                        : "name a file in a folder that you may write to, with room for it";
}

}  // namespace

Status write_whole(const std::string& path, const std::string& text, const std::string& what) {
  struct stat about {};
  const bool is_there = ::stat(path.c_str(), &about) == 0;
  const bool is_special = is_there && !S_ISREG(about.st_mode);
  const std::unique_ptr<char, void (*)(void*)> real(
      is_there ? ::realpath(path.c_str(), nullptr) : nullptr, std::free);
  const std::string target = real != nullptr ? real.get() : path;
  std::string fresh = target + ".XXXXXX";
  const int file = is_special ? ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
                              : ::mkostemp(fresh.data(), O_CLOEXEC);
  int error = file < 0 ? errno : 0;
  const LargeFiles large;
  for (size_t at = 0; error == 0 && at < text.size();) {
    const ssize_t n = ::write(file, text.data() + at, text.size() - at);
    if (n > 0) at += static_cast<size_t>(n);
    if (n < 0 && errno == EAGAIN)
      error = wait_for_reader(file);
    else if (n < 0 && errno != EINTR)
      error = errno;
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (error == 0 && !is_special &&
      (::fchmod(file, is_there ? about.st_mode & 0777 : 0666 & ~mask) != 0 ||
       ::rename(fresh.c_str(), target.c_str()) != 0))
    error = errno;
  if (file >= 0) ::close(file);
  if (error == 0) return {};
  if (file >= 0 && !is_special) static_cast<void>(::unlink(fresh.c_str()));
  return failure(error, "write " + what + " to " + path, remedy_for(error));
}

}  // namespace outcore::cli
