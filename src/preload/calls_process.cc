// fork, exec and the ways to end. See calls.h.
#include <cstdarg>
#include <vector>

#include "preload/calls.h"
#include "preload/heap.h"

#define OUTCORE_END OUTCORE_EXPORT __attribute__((noreturn))

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

template <typename Call>
pid_t fork_by(const Call& call) {
  if (is_inside()) return call();
  Door& door = Door::instance();
  const outcore::os::SignalBlock block;
  door.before_fork();
  const pid_t child = call();
  const int saved_errno = errno;
  if (child == 0)
    door.after_fork_in_child();
  else
    door.after_fork_in_parent();
  errno = saved_errno;
  return child;
}

}  // namespace

OUTCORE_EXPORT pid_t fork() noexcept {
  return fork_by([] { return real().fork(); });
}

OUTCORE_EXPORT int forkpty(int* terminal, char* name, const termios* modes,
                           const winsize* size) noexcept {
  return fork_by([&] { return real().forkpty(terminal, name, modes, size); });
}

// In the child it returns, in the parent it ends the process past our way to end.
OUTCORE_EXPORT int daemon(int keeps_folder, int keeps_files) noexcept {
  Door::instance().store_all();
  return static_cast<int>(fork_by([&] { return real().daemon(keeps_folder, keeps_files); }));
}

namespace {

void touch(const char* text) {
  if (text == nullptr) return;
  while (__atomic_load_n(text, __ATOMIC_RELAXED) != 0) ++text;
}

// The process becomes another program: what was written must be in the files. A forked child has
// nothing of its own to store, nor has the child of vfork, which is still the parent in memory.
// What the kernel is to read may lie in the heap, where it cannot wait for it.
void before_exec(const char* path, char* const* arguments, char* const* names) {
  Door::instance().store_all();
  if (!Heap::is_used()) return;
  touch(path);
  for (char* const* list : {arguments, names})
    for (; list != nullptr && *list != nullptr; ++list) touch(*list);
}

}  // namespace

OUTCORE_EXPORT int execve(const char* path, char* const* arguments, char* const* names) noexcept {
  before_exec(path, arguments, names);
  return real().execve(path, arguments, names);
}

OUTCORE_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  before_exec(path, arguments, nullptr);
  return real().execv(path, arguments);
}

OUTCORE_EXPORT int execvp(const char* path, char* const* arguments) noexcept {
  before_exec(path, arguments, nullptr);
  return real().execvp(path, arguments);
}

OUTCORE_EXPORT int execvpe(const char* path, char* const* arguments, char* const* names) noexcept {
  before_exec(path, arguments, names);
  return real().execvpe(path, arguments, names);
}

OUTCORE_EXPORT int fexecve(int fd, char* const* arguments, char* const* names) noexcept {
  before_exec(nullptr, arguments, names);
  return real().fexecve(fd, arguments, names);
}

namespace {

std::vector<char*> list_of(const char* first, va_list arguments) {
  std::vector<char*> all{const_cast<char*>(first)};
  while (all.back() != nullptr) all.push_back(va_arg(arguments, char*));
  return all;
}

}  // namespace

OUTCORE_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> all = list_of(first, arguments);
  va_end(arguments);
  return execv(path, all.data());
}

OUTCORE_EXPORT int execlp(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> all = list_of(first, arguments);
  va_end(arguments);
  return execvp(path, all.data());
}

OUTCORE_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<char*> all = list_of(first, arguments);
  char* const* names = va_arg(arguments, char* const*);
  va_end(arguments);
  return execve(path, all.data(), names);
}

OUTCORE_END void _exit(int status) {
  end_of_process();
  real()._exit(status);
  __builtin_unreachable();
}

OUTCORE_END void _Exit(int status) noexcept {
  end_of_process();
  real()._Exit(status);
  __builtin_unreachable();
}

OUTCORE_END void quick_exit(int status) noexcept {  // banned-ok: the program's own call
  end_of_process();
  real().quick_exit(status);  // banned-ok: the program's own call
  __builtin_unreachable();
}

OUTCORE_EXPORT int execveat(int folder, const char* path, char* const* arguments,
                            char* const* names, int flags) noexcept {
  before_exec(path, arguments, names);
  return real().execveat(folder, path, arguments, names, flags);
}

OUTCORE_END void abort() noexcept {
  Door::instance().store_all();
  real().abort();
  __builtin_unreachable();
}
