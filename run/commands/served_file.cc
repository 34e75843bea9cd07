#include "run/commands/served_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/text.h"

namespace outcore::cli {

Status ServedFile::look_after(const HeldBuffer& buffer) {
  if (is_held() && is_to_be_given_back()) give_back();
  if (is_held()) return {};
  Status taken = take(buffer);
  if (!taken) give_back();
  return taken;
}

bool ServedFile::is_to_be_given_back() const {
  if (::fcntl(fd_, F_GETLEASE) != F_RDLCK) return true;  // somebody waits for it
  struct stat own {
  }, named{};
  return ::fstat(fd_, &own) != 0 || ::stat(path_.c_str(), &named) != 0 ||
         own.st_ino != named.st_ino || own.st_dev != named.st_dev;
}

// Others may go on with its pages until it has changed: then it is another file to them. The one
// who waits goes on when the lease is gone.
void ServedFile::give_back() {
  held_.reset();
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Status ServedFile::take(const HeldBuffer& buffer) {
  const std::string attempt = "hold " + path_;
  // Without O_NONBLOCK a pipe would wait for who writes it.
  fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0) return failure(errno, attempt, "name a file that you may read");
  struct stat about {};
  if (::fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode) || about.st_size == 0)
    return Error{EINVAL, attempt + ": it is empty, or not a regular file: name one that has bytes"};
  if (::fcntl(fd_, F_SETLEASE, F_RDLCK) != 0) {
    const int why = errno;
    if (why == EAGAIN) return Error{EAGAIN, attempt + ": somebody has it open for writing"};
    return failure(why, attempt,
                   why == EACCES ? "only its owner gets notice before it is written"
                                 : "its filesystem gives no notice before a file is written");
  }
  Result<HeldFile> held = buffer.hold_file(fd_);
  if (!held) return Error{held.code(), attempt + ": " + held.message()};
  held_.emplace(std::move(held).value());
  return {};
}

}  // namespace outcore::cli
