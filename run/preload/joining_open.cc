#include "run/preload/joining_open.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "run/preload/calls.h"
#include "run/preload/settings.h"

namespace outcore::preload {
namespace {

// Whether the descriptor can be used to read or write, or to map.
bool is_concerned(int flags) {
  return JoiningOpen::is_on() && (flags & (O_PATH | O_DIRECTORY)) == 0 && !is_inside() &&
         !is_borrowing();
}

// Others need not answer who makes the file empty: they hand it back first, as to a stranger.
bool may_join(int folder, const char* path, int flags) {
  struct stat about;
  return path != nullptr && (flags & O_TRUNC) == 0 && ::fstatat(folder, path, &about, 0) == 0 &&
         S_ISREG(about.st_mode) && static_cast<uint64_t>(about.st_size) >= settings().min_bytes;
}

}  // namespace

std::atomic<bool> JoiningOpen::is_on_{false};

void JoiningOpen::prepare() { is_on_.store(settings().shares_writes); }

JoiningOpen::JoiningOpen(int folder, const char* path, int flags) {
  is_stranger_ = is_concerned(flags);
  if (!is_stranger_) return;
  const int saved_errno = errno;
  if (may_join(folder, path, flags))
    static_cast<void>(is_ready([&] {
      buffer::Member* const member = Door::instance().member_to_share();
      if (member == nullptr) return;
      lock_.emplace(*member);
      if (!lock_->is_held()) return;  // a member is stopped: this is a stranger's open
      opening_.emplace(member);
      is_joining_ = true;
      is_stranger_ = false;
    }));
  errno = saved_errno;
}

int JoiningOpen::joined(int fd) const {
  if (fd < 0 || (!is_joining_ && !is_stranger_)) return fd;
  const int saved_errno = errno;
  const auto join = [this, fd] {
    if (is_joining_)
      Door::instance().join_writers(fd);
    else
      Door::instance().opened_as_stranger(fd);
  };
  if (!is_ready(join)) {
    real().close(fd);
    return fail(ENOMEM);
  }
  errno = saved_errno;
  return fd;
}

}  // namespace outcore::preload
