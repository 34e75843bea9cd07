// utime and its kin: what was written through mappings must be in the file before a time is set, or
// storing it later would set another one. See calls.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <utime.h>

#include "run/preload/calls.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

constexpr uint64_t kToTheEnd = UINT64_MAX / 2;

// What cannot be stored is reported, and stays in memory. The time is set all the same, as the
// kernel would set it.
void store(const Identity& file) {
  if (is_borrowing()) {  // a child of vfork: its parent hands the file back
    if (const int link = ReleaseLink::asking_end(); link >= 0) ReleaseLink::ask(link, {file, true});
    return;
  }
  TakenFile* const taken = Door::instance().file_of_parent_or_ours(file);
  if (taken != nullptr) static_cast<void>(Door::instance().before_read(*taken, 0, kToTheEnd));
}

// A path of nullptr stands for the descriptor itself.
void before_times(int folder, const char* path, int flags) {
  struct stat about;
  if (!Door::is_any_taken() || is_inside()) return;
  flags &= AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;
  static_cast<void>(is_ready([&] {
    const bool is_there = path == nullptr ? ::fstat(folder, &about) == 0
                                          : ::fstatat(folder, path, &about, flags) == 0;
    if (is_there) store(identity_of(about));
  }));
}

}  // namespace

namespace outcore::preload {

long set_times(long number, long a, long b, long c, long d) {
  const bool has_folder = number == SYS_futimesat || number == SYS_utimensat;
  const auto* const path = reinterpret_cast<const char*>(has_folder ? b : a);
  const long flags = number == SYS_utimensat ? d : 0;
  if (has_folder || path != nullptr)
    before_times(has_folder ? static_cast<int>(a) : AT_FDCWD, path, static_cast<int>(flags));
  return real().syscall(number, a, b, c, d);
}

}  // namespace outcore::preload

OUTCORE_EXPORT int utime(const char* path, const utimbuf* times) noexcept {
  before_times(AT_FDCWD, path, 0);
  return real().utime(path, times);
}

OUTCORE_EXPORT int utimes(const char* path, const timeval* times) noexcept {
  before_times(AT_FDCWD, path, 0);
  return real().utimes(path, times);
}

OUTCORE_EXPORT int lutimes(const char* path, const timeval* times) noexcept {
  before_times(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
  return real().lutimes(path, times);
}

OUTCORE_EXPORT int futimes(int fd, const timeval* times) noexcept {
  before_times(fd, nullptr, 0);
  return real().futimes(fd, times);
}

OUTCORE_EXPORT int futimesat(int folder, const char* path, const timeval* times) noexcept {
  before_times(folder, path, 0);
  return real().futimesat(folder, path, times);
}

OUTCORE_EXPORT int utimensat(int folder, const char* path, const timespec* times,
                             int flags) noexcept {
  before_times(folder, path, flags);
  return real().utimensat(folder, path, times, flags);
}

OUTCORE_EXPORT int futimens(int fd, const timespec* times) noexcept {
  before_times(fd, nullptr, 0);
  return real().futimens(fd, times);
}
