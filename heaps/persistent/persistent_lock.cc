#include "heaps/persistent/persistent_lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/os/descriptor_place.h"

namespace outcore::heap::persistent {

namespace {

// The descriptors of all locks. A child that inherits one would keep the lock after its parent's
// end: fork() closes them there.
class Held {
 public:
  static Held& all() {
    static Held& held = *new Held;  // as long as there may be a fork
    return held;
  }
  // No fork comes in between.
  std::lock_guard<std::mutex> hold() { return std::lock_guard<std::mutex>(lock_); }
  // REQUIRES: hold().
  void add(int fd) { fds_.push_back(fd); }
  void remove(int fd) { std::erase(fds_, fd); }

 private:
  Held() {
    ::pthread_atfork([] { all().lock_.lock(); }, [] { all().lock_.unlock(); },
                     [] {
                       for (const int fd : all().fds_) ::close(fd);
                       all().fds_.clear();
                       all().lock_.unlock();
                     });
  }
  std::mutex lock_;
  std::vector<int> fds_;
};

}  // namespace

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), process_(other.process_) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(process_, other.process_);
  return *this;
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  if (process_ == ::getpid()) {
    // A child that has the descriptor all the same (clone, no fork) would keep it locked.
    ::flock(fd_, LOCK_UN);
    const auto guard = Held::all().hold();
    Held::all().remove(fd_);
  } else if (process_ != 0) {
    return;  // a forked child, which has closed it
  }
  ::close(fd_);
}

Result<FileLock> FileLock::take(const std::string& path, bool is_exclusive) {
  FileLock lock;
  const auto guard = Held::all().hold();
  const int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  do {  // network filesystems lock for writing only what is open for it
    lock.fd_ = is_exclusive ? os::above_standard(::open(path.c_str(), O_RDWR | flags)) : -1;
    if (lock.fd_ < 0 && (!is_exclusive || errno == EISDIR))
      lock.fd_ = os::above_standard(::open(path.c_str(), O_RDONLY | flags));
  } while (lock.fd_ < 0 && errno == EINTR);
  if (lock.fd_ < 0)
    return base::system_error(errno, "open the heap " + path,
                              errno == ENOENT ? "check the path, or create() it" : "");
  int result = 0;
  do result = ::flock(lock.fd_, (is_exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB);
  while (result != 0 && errno == EINTR);
  lock.process_ = result == 0 ? ::getpid() : 0;
  if (result == 0) {
    Held::all().add(lock.fd_);
    return lock;
  }
  if (errno != EWOULDBLOCK) return base::system_error(errno, "lock the heap " + path);
  return Error{EBUSY,
               "open the heap " + path +
                   (is_exclusive ? ": it is open elsewhere" : ": it is open elsewhere to write") +
                   ": close it there first"};
}

std::string FileLock::identity() const {
  struct stat about;
  if (fd_ < 0 || ::fstat(fd_, &about) != 0) return {};
  return std::to_string(about.st_dev) + ":" + std::to_string(about.st_ino);
}

}  // namespace outcore::heap::persistent
