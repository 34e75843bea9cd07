#include "run/preload/change_group.h"

#include <fcntl.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "run/preload/real.h"

namespace outcore::preload {

ChangeGroup::~ChangeGroup() {
  if (group_ >= 0) real().close(group_);
}

int ChangeGroup::watch(const char* path) {
  if (group_ < 0)
    group_ = ::fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY | O_CLOEXEC);
  if (group_ < 0) return -errno;
  const int result =
      ::fanotify_mark(group_, FAN_MARK_ADD | FAN_MARK_INODE, FAN_MODIFY, AT_FDCWD, path);
  return result == 0 ? 0 : -errno;
}

void ChangeGroup::end(const char* path) {
  if (group_ < 0) return;
  // The kernel refuses this if the file was not watched.
  static_cast<void>(
      ::fanotify_mark(group_, FAN_MARK_REMOVE | FAN_MARK_INODE, FAN_MODIFY, AT_FDCWD, path));
}

ChangeGroup::Wait ChangeGroup::to_wait_for() const {
  if (group_ < 0) return {};
  const uint64_t now_ns = os::now_ns();
  if (now_ns >= rests_until_ns_) return {group_, -1};
  return {-1, static_cast<int>((rests_until_ns_ - now_ns) / 1'000'000) + 1};
}

void ChangeGroup::rest() { rests_until_ns_ = os::now_ns() + kRestNs; }

ChangeGroup::Heard ChangeGroup::next(Identity* changed, int* process) {
  OC_ASSERT(changed != nullptr && process != nullptr);
  if (group_ < 0) return Heard::kNothing;
  alignas(fanotify_event_metadata) char event[sizeof(fanotify_event_metadata)];
  const ssize_t bytes = real().read(group_, event, sizeof event);
  // An event that the kernel cannot report, because it has no descriptor or memory for it, is lost.
  if (bytes < 0) return errno == EAGAIN || errno == EINTR ? Heard::kNothing : Heard::kAny;
  OC_ASSERT(bytes == sizeof event);
  const auto* e = reinterpret_cast<const fanotify_event_metadata*>(event);
  *process = e->pid;
  const bool is_own = e->pid == ::getpid();
  struct stat about;
  const bool is_known = !is_own && e->fd >= 0 && ::fstat(e->fd, &about) == 0;
  if (e->fd >= 0) real().close(e->fd);
  if (is_own) return Heard::kOwn;
  if (!is_known) return Heard::kAny;  // for example, there were too many
  *changed = identity_of(about);
  return Heard::kFile;
}

}  // namespace outcore::preload
