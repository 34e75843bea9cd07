// open, close, dup and truncate. See calls.h.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "run/preload/calls.h"
#include "run/preload/descriptor_table.h"
#include "run/preload/joining_open.h"
#include "run/preload/more_opens.h"
#include "run/preload/own_descriptors.h"
#include "run/preload/path_calls.h"
#include "run/preload/watch.h"
#include "run/preload/words.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace outcore::preload {

void ask_for_path(int folder, const char* path, bool is_only_if_written) {
  struct stat about;
  const int link = ReleaseLink::asking_end();
  if (link < 0 || path == nullptr || ::fstatat(folder, path, &about, 0) != 0) return;
  ReleaseLink::ask(link, {identity_of(about), is_only_if_written});
}

}  // namespace outcore::preload

namespace {

// What must happen before the program itself opens a taken file, which is put into `opened`. False:
// it must not be opened.
bool before_open(int folder, const char* path, int flags, TakenFile** opened) {
  Door& door = Door::instance();
  const bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if (is_borrowing()) {
    ask_for_path(folder, path, !writes);
    return true;
  }
  *opened = door.file_of_path(folder, path);
  if ((flags & O_TRUNC) != 0)
    return door.before_path_change(folder, path, "the program opens it to make it empty");
  if (*opened != nullptr && writes) door.before_write_open(**opened);
  return true;
}

int opened(int fd) {
  const bool is_noted = fd >= 0 && (Door::is_any_taken() || DescriptorTable::is_marked(fd));
  if (!is_noted || is_borrowing()) return fd;
  DescriptorTable::set_stdio(fd, false);
  if (!Door::is_any_taken()) return fd;
  const int saved_errno = errno;
  if (!is_ready([fd] { Door::instance().note_descriptor(fd); })) {
    real().close(fd);  // we would not see what is done through it
    return fail(ENOMEM);
  }
  errno = saved_errno;
  return fd;
}

// By a call that joins nobody who writes the file together with others.
int opened_strangely(int fd) {
  const int result = opened(fd);
  if (result >= 0 && JoiningOpen::is_on() && !is_inside() && !is_borrowing())
    afterwards([result] { Door::instance().opened_as_stranger(result); });
  return result;
}

int open_any(int folder, const char* path, int flags, mode_t mode) {
  if (is_inside()) return real().openat(folder, path, flags, mode);
  const JoiningOpen joining(folder, path, flags);
  const bool is_concerned = (flags & O_TRUNC) != 0 ? is_anybodys() : !is_plain();
  TakenFile* file = nullptr;
  const auto before = [&] { return before_open(folder, path, flags, &file); };
  if (is_concerned && prepare(before) != 0) return -1;
  const Watch::Quiet quiet(file);
  return joining.joined(opened(real().openat(folder, path, flags, mode)));
}

mode_t mode_of(int flags, va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

OUTCORE_EXPORT int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any(AT_FDCWD, path, flags, mode);
}
OUTCORE_ALIAS(int, open64, (const char*, int, ...), open);
OUTCORE_EXPORT int __open_2(const char* path, int flags) {
  return open_any(AT_FDCWD, path, flags, 0);
}
OUTCORE_ALIAS(int, __open64_2, (const char*, int), __open_2);

OUTCORE_EXPORT int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_any(folder, path, flags, mode);
}
OUTCORE_ALIAS(int, openat64, (int, const char*, int, ...), openat);
OUTCORE_EXPORT int __openat_2(int folder, const char* path, int flags) {
  return open_any(folder, path, flags, 0);
}
OUTCORE_ALIAS(int, __openat64_2, (int, const char*, int), __openat_2);

OUTCORE_EXPORT int creat(const char* path, mode_t mode) {
  return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
OUTCORE_ALIAS(int, creat64, (const char*, mode_t), creat);

OUTCORE_EXPORT int open_by_handle_at(int mount, file_handle* handle, int flags) {
  const bool changes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0;
  if (is_inside()) return real().open_by_handle_at(mount, handle, flags);
  // There is no path to look up, so the file is opened (O_PATH) to find out which one it is.
  TakenFile* file = nullptr;
  if (changes && is_anybodys())
    if (const int fd = real().open_by_handle_at(mount, handle, O_PATH | O_CLOEXEC); fd >= 0) {
      char path[64];
      std::snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
      const int error =
          prepare([&] { return before_open(AT_FDCWD, path, flags, &file); }) == 0 ? 0 : errno;
      real().close(fd);
      if (error != 0) return fail(error);
    }
  const Watch::Quiet quiet(file);
  return opened_strangely(real().open_by_handle_at(mount, handle, flags));
}

namespace outcore::preload {

int open_at_how(int folder, const char* path, open_how* how, size_t size_bytes) {
  TakenFile* file = nullptr;
  const auto before = [&] {
    return before_open(folder, path, static_cast<int>(how->flags), &file);
  };
  if (how != nullptr && is_anybodys() && prepare(before) != 0) return -1;
  const Watch::Quiet quiet(file);
  return opened_strangely(
      static_cast<int>(real().syscall(SYS_openat2, folder, path, how, size_bytes, 0L, 0L)));
}

int get_descriptor(int pidfd, int number, unsigned flags) {
  return opened_strangely(static_cast<int>(real().syscall(SYS_pidfd_getfd, pidfd, number, flags)));
}

}  // namespace outcore::preload

OUTCORE_EXPORT int close(int fd) {
  if (is_inside()) return real().close(fd);
  if (OwnDescriptors::has(fd)) return fail(EBADF);
  if (!DescriptorTable::is_marked(fd) || is_borrowing()) return real().close(fd);
  TakenFile* file = DescriptorTable::entry_of(fd);
  DescriptorTable::closed(fd);
  const int result = real().close(fd);
  if (file != nullptr) afterwards([file] { Door::instance().closed_descriptor(*file); });
  return result;
}

namespace {

// The kernel has closed them.
void closed_range(unsigned first, unsigned last) {
  for (unsigned at = first; at <= last; ++at) {
    const int fd = static_cast<int>(at);
    TakenFile* file = DescriptorTable::entry_of(fd);
    DescriptorTable::closed(fd);
    if (file != nullptr) afterwards([file] { Door::instance().closed_descriptor(*file); });
  }
}

}  // namespace

OUTCORE_EXPORT int close_range(unsigned first, unsigned last, int flags) noexcept {
  if (is_inside()) return real().close_range(first, last, flags);
  if (first > last) return fail(EINVAL);
  // CLOSE_RANGE_UNSHARE and a child of vfork close them in a table of their own: the other threads,
  // or the parent, still have them.
  const bool is_closing =
      (flags & (CLOSE_RANGE_CLOEXEC | CLOSE_RANGE_UNSHARE)) == 0 && !is_borrowing();
  // Our own descriptors stay open.
  const auto end = static_cast<unsigned>(OwnDescriptors::kDescriptorsMax);
  for (unsigned at = first; at <= last;) {
    const unsigned own =
        at < end ? static_cast<unsigned>(OwnDescriptors::next(static_cast<int>(at))) : end;
    const unsigned stop = own >= end || own > last ? last : own - 1;
    if (own != at) {
      const int result = real().close_range(at, stop, flags);
      if (result != 0) return result;
      if (is_closing) closed_range(at, std::min(stop, end - 1));
    }
    if (stop == last || own >= end) break;
    at = own + 1;
  }
  return 0;
}

OUTCORE_EXPORT void closefrom(int first) noexcept {
  close_range(static_cast<unsigned>(std::max(first, 0)), ~0u, 0);
}

namespace {

// A child of vfork makes a copy for the program that it becomes. So a file that is written is
// handed back (file_of), and the parent's table stays as it is.
int copied(int from, int copy) {
  if (copy < 0 || is_inside()) return copy;
  if (copy == STDERR_FILENO && !is_borrowing()) note_standard_error();
  if (!DescriptorTable::is_marked(from) && !DescriptorTable::is_marked(copy)) return copy;
  afterwards([from, copy] {
    if (is_borrowing()) {
      static_cast<void>(DescriptorTable::file_of(from));
      return;
    }
    DescriptorTable::copied(from, copy);
    TakenFile* const file = DescriptorTable::file_of(copy);
    if (file != nullptr && (copy <= STDERR_FILENO || DescriptorTable::is_stdio(copy)))
      Door::instance().hand_back_if_writable(*file, "the program may use it by stdio");
  });
  return copy;
}

}  // namespace

OUTCORE_EXPORT int dup(int fd) noexcept { return copied(fd, real().dup(fd)); }

OUTCORE_EXPORT int dup3(int from, int to, int flags) noexcept {
  if (!is_inside() && OwnDescriptors::has(to)) return fail(EBUSY);
  TakenFile* file = is_inside() || from == to ? nullptr : DescriptorTable::entry_of(to);
  const int copy = copied(from, real().dup3(from, to, flags));
  if (copy >= 0 && file != nullptr && !is_borrowing())
    afterwards([file] { Door::instance().closed_descriptor(*file); });
  return copy;
}

OUTCORE_EXPORT int dup2(int from, int to) noexcept {
  if (from == to) return real().dup2(from, to);
  return dup3(from, to, 0);
}

OUTCORE_EXPORT int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!is_inside() && OwnDescriptors::has(fd)) return fail(EBADF);
  const int result = real().fcntl(fd, command, argument);
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? copied(fd, result) : result;
}
OUTCORE_ALIAS(int, fcntl64, (int, int, ...), fcntl);

OUTCORE_EXPORT int truncate(const char* path, off_t size) noexcept {
  const auto before = [path] {
    if (is_borrowing()) return ask_for_path(AT_FDCWD, path, false), true;
    return Door::instance().before_path_change(AT_FDCWD, path, "it is made shorter or longer");
  };
  return !is_anybodys() || prepare(before) == 0 ? real().truncate(path, size) : -1;
}
OUTCORE_ALIAS(int, truncate64, (const char*, off_t), truncate);

namespace {

// What was written through a mapping is part of the file, too, so it is stored first.
template <typename Call>
int store_and(int fd, const Call& call) {
  TakenFile* file = is_plain() ? nullptr : DescriptorTable::file_of(fd);
  const auto store = [&] { return Door::instance().before_read(*file, 0, UINT64_MAX / 2); };
  if (file != nullptr && by_errno(store) != 0) return -1;
  return call(fd);
}

}  // namespace

OUTCORE_EXPORT int fsync(int fd) {
  return store_and(fd, [](int f) { return real().fsync(f); });
}
OUTCORE_EXPORT int fdatasync(int fd) {
  return store_and(fd, [](int f) { return real().fdatasync(f); });
}
