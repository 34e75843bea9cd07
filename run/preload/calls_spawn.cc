// posix_spawn and other functions that start programs in the same way: the child shares our memory,
// and makes no call that we see. See calls.h.
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>

#include "run/preload/calls.h"
#include "run/preload/leaving.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// How the C library stores what the child is to do: posix_spawn_file_actions_t points to these, and
// has their number. This is not part of its interface, so try_layout() checks it before it is used.
struct Action {
  enum Kind : int { kClose = 0, kDup2 = 1 };
  int kind;
  int padding;
  int fd, new_fd;
  void* others[2];
};

const Action* actions_of(const posix_spawn_file_actions_t& actions) {
  return reinterpret_cast<const Action*>(actions.__actions);
}

bool try_layout() {
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return false;
  bool is_as_thought = false;
  if (::posix_spawn_file_actions_adddup2(&actions, 7, 9) == 0 &&
      ::posix_spawn_file_actions_addclose(&actions, 5) == 0 && actions.__used == 2) {
    const Action* a = actions_of(actions);
    is_as_thought = a[0].kind == Action::kDup2 && a[0].fd == 7 && a[0].new_fd == 9 &&
                    a[1].kind == Action::kClose && a[1].fd == 5;
  }
  ::posix_spawn_file_actions_destroy(&actions);
  return is_as_thought;
}

// Whether the child copies the descriptor: the copy has another number, and stays open.
bool is_copied(const posix_spawn_file_actions_t* actions, int fd) {
  static const bool is_readable = try_layout();
  if (actions == nullptr || actions->__used == 0) return false;
  if (!is_readable) return true;
  const Action* a = actions_of(*actions);
  for (int i = 0; i < actions->__used; ++i)
    if (a[i].kind == Action::kDup2 && a[i].fd == fd) return true;
  return false;
}

template <typename Call>
auto start(const posix_spawn_file_actions_t* actions, const Call& call, decltype(call()) refused) {
  const auto leaves = [actions](int fd) { return stays_over_exec(fd) || is_copied(actions, fd); };
  const auto begin = [&] {
    if (is_inside() || is_borrowing()) {
      let_leave(leaves);
      return call();
    }
    const Starting starting(leaves);
    return call();
  };
  return or_no_memory(begin, refused);
}

}  // namespace

OUTCORE_EXPORT int posix_spawn(pid_t* child, const char* path,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const* arguments,
                               char* const* names) {
  bring_in(path, arguments, names);
  const auto call = [&] {
    return real().posix_spawn(child, path, actions, attributes, arguments, names);
  };
  return start(actions, call, ENOMEM);
}

OUTCORE_EXPORT int posix_spawnp(pid_t* child, const char* path,
                                const posix_spawn_file_actions_t* actions,
                                const posix_spawnattr_t* attributes, char* const* arguments,
                                char* const* names) {
  bring_in(path, arguments, names);
  const auto call = [&] {
    return real().posix_spawnp(child, path, actions, attributes, arguments, names);
  };
  return start(actions, call, ENOMEM);
}

OUTCORE_EXPORT int system(const char* command) {  // banned-ok: the program's own call
  bring_in(command, nullptr, nullptr);
  return start(
      nullptr, [&] { return real().system(command); }, -1);
}

OUTCORE_EXPORT FILE* popen(const char* command, const char* mode) {  // banned-ok: as system
  bring_in(command, nullptr, nullptr);
  return start(
      nullptr, [&] { return real().popen(command, mode); }, nullptr);
}
