// exec and the ways to end. See calls.h.
#include <cerrno>
#include <cstdarg>

#include "core/base/units.h"
#include "core/os/signal_delivery.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/heap.h"
#include "run/preload/last_store.h"
#include "run/preload/leaving.h"

#define OUTCORE_END OUTCORE_EXPORT __attribute__((noreturn))

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

// What happens to memory and files is done in handlers for fork(): see fork.h. Only what may make
// fork() fail is done here.
OUTCORE_EXPORT pid_t fork() noexcept {
  if (!Heap::prepare_fork()) return errno = ENOMEM, -1;
  const pid_t child = real().fork();
  const int error = errno;
  Heap::drop_prepared();
  errno = error;
  return child;
}

// In the child it returns; in the parent it ends the process without a call of our _exit(), so
// everything is stored before.
OUTCORE_EXPORT int daemon(int keeps_folder, int keeps_files) noexcept {
  const auto store = [] {
    Door::instance().store_all();
    Door::instance().keep_learnt();
  };
  if (!is_ready(store)) return -1;
  return real().daemon(keeps_folder, keeps_files);
}

namespace {

void touch(const char* text) {
  if (text == nullptr || !concerns(text, outcore::base::kSystemPage)) return;
  while (__atomic_load_n(text, __ATOMIC_RELAXED) != 0) ++text;
}

}  // namespace

namespace outcore::preload {

void bring_in(const char* path, char* const* arguments, char* const* names) {
  if (is_inside() || (!Heap::is_used() && !needs_bounce())) return;
  touch(path);
  for (char* const* list : {arguments, names}) {
    const char* word = nullptr;
    // An invalid list is left to the kernel, which refuses it.
    for (; list != nullptr && os::copy_or_fail(&word, list, sizeof word); ++list) {
      if (word == nullptr) break;
      touch(word);
    }
  }
}

}  // namespace outcore::preload

namespace {

// The process becomes another program, so what was written must be in the files. A forked child has
// nothing of its own to store; nor has a child of vfork, which shares its parent's memory. But
// files whose descriptors they pass on must be handed back by the parent. False, and errno: it
// could not be done.
bool before_exec(const char* path, char* const* arguments, char* const* names) {
  const auto store = [] {
    Door::instance().store_all();
    Door::instance().keep_learnt();
    LastStore::note_attempt_over();
    let_leave(stays_over_exec);
  };
  if (!is_ready(store)) return false;
  bring_in(path, arguments, names);
  return true;
}

}  // namespace

OUTCORE_EXPORT int execve(const char* path, char* const* arguments, char* const* names) noexcept {
  if (!before_exec(path, arguments, names)) return -1;
  return real().execve(path, arguments, names);
}

OUTCORE_EXPORT int execv(const char* path, char* const* arguments) noexcept {
  if (!before_exec(path, arguments, nullptr)) return -1;
  return real().execv(path, arguments);
}

OUTCORE_EXPORT int execvp(const char* path, char* const* arguments) noexcept {
  if (!before_exec(path, arguments, nullptr)) return -1;
  return real().execvp(path, arguments);
}

OUTCORE_EXPORT int execvpe(const char* path, char* const* arguments, char* const* names) noexcept {
  if (!before_exec(path, arguments, names)) return -1;
  return real().execvpe(path, arguments, names);
}

OUTCORE_EXPORT int fexecve(int fd, char* const* arguments, char* const* names) noexcept {
  if (!before_exec(nullptr, arguments, names)) return -1;
  return real().fexecve(fd, arguments, names);
}

namespace {

// How many words a list of arguments has, without the null pointer at its end. The lists are made
// on the stack: a child of vfork that becomes another program would never free what it allocates in
// its parent's memory.
size_t count_words(const char* first, va_list arguments) {
  size_t count = 0;
  for (const char* word = first; word != nullptr; word = va_arg(arguments, char*)) ++count;
  return count;
}

void copy_words(char** into, const char* first, va_list arguments) {
  *into = const_cast<char*>(first);
  while (*into != nullptr) *++into = va_arg(arguments, char*);
}

}  // namespace

// A list of the arguments behind `first`, as an array on the caller's stack.
#define OUTCORE_WORDS(words, arguments, first)                                               \
  va_list arguments;                                                                         \
  va_start(arguments, first);                                                                \
  const size_t words##_count = count_words(first, arguments);                                \
  va_end(arguments);                                                                         \
  char** words = static_cast<char**>(__builtin_alloca((words##_count + 1) * sizeof(char*))); \
  va_start(arguments, first);                                                                \
  copy_words(words, first, arguments)

OUTCORE_EXPORT int execl(const char* path, const char* first, ...) noexcept {
  OUTCORE_WORDS(words, arguments, first);
  va_end(arguments);
  return execv(path, words);
}

OUTCORE_EXPORT int execlp(const char* path, const char* first, ...) noexcept {
  OUTCORE_WORDS(words, arguments, first);
  va_end(arguments);
  return execvp(path, words);
}

OUTCORE_EXPORT int execle(const char* path, const char* first, ...) noexcept {
  OUTCORE_WORDS(words, arguments, first);
  char* const* names = va_arg(arguments, char* const*);
  va_end(arguments);
  return execve(path, words, names);
}

OUTCORE_END void _exit(int status) {
  end_of_process();
  if (Heap::is_used()) LastStore::run(LastStore::What::kStoreAndRetire);
  real()._exit(status);
  __builtin_unreachable();
}

OUTCORE_END void _Exit(int status) noexcept {
  end_of_process();
  if (Heap::is_used()) LastStore::run(LastStore::What::kStoreAndRetire);
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
  if (!before_exec(path, arguments, names)) return -1;
  return real().execveat(folder, path, arguments, names, flags);
}

OUTCORE_END void abort() noexcept {
  LastStore::run(LastStore::What::kStore);
  real().abort();
  __builtin_unreachable();
}
