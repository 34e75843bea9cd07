// Calls: what the files that take over the program's calls have in common.
//
// Each call looks first whether anything of ours is concerned, by one or two words of memory; if
// not, it is the real call. They set errno as the real ones do.
#pragma once

#include <cerrno>
#include <cstddef>
#include <new>

#include "run/preload/door.h"
#include "run/preload/inside.h"
#include "run/preload/real.h"

#define OUTCORE_EXPORT extern "C" __attribute__((visibility("default")))
// Another name of the same function.
#define OUTCORE_ALIAS(result, name, parameters, target) \
  extern "C" __attribute__((visibility("default"), alias(#target))) result name parameters

namespace outcore::preload {

inline bool concerns(const void* address, size_t size_bytes) {
  if (!Door::is_any_taken() || is_inside() || !Door::may_concern(address, size_bytes)) return false;
  Door::revive_range(address, size_bytes);
  return true;
}

// The program has blocked SIGBUS or SIGSEGV in this thread, as it thinks.
bool thinks_blocked(int signal);

// This process only shares the memory that our state is in, as a child of vfork does: its calls
// change none of that state. A system call: asked where state would change.
inline bool is_borrowing() { return Door::instance().is_of_another_process(); }

// Runs a call on the door. A list of ours that is too large for the memory that is left is ENOMEM.
template <typename Call>
auto or_no_memory(const Call& call, decltype(call()) otherwise) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    return otherwise;
  }
}

inline int fail(int error) {
  errno = error;
  return -1;
}

}  // namespace outcore::preload
