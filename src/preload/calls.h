// Calls: what the files that take over the program's calls have in common.
//
// Each call looks first whether anything of ours is concerned, by one or two words of memory; if
// not, it is the real call. They set errno as the real ones do.
#pragma once

#include <cerrno>
#include <cstddef>

#include "preload/door.h"
#include "preload/inside.h"
#include "preload/real.h"

#define OUTCORE_EXPORT extern "C" __attribute__((visibility("default")))
// Another name of the same function.
#define OUTCORE_ALIAS(result, name, parameters, target) \
  extern "C" __attribute__((visibility("default"), alias(#target))) result name parameters

namespace outcore::preload {

inline bool concerns(const void* address, size_t size_bytes) {
  return Door::is_any_taken() && !is_inside() && Door::may_concern(address, size_bytes);
}

// The program has blocked SIGBUS or SIGSEGV in this thread, as it thinks.
bool thinks_blocked(int signal);

inline int fail(int error) {
  errno = error;
  return -1;
}

}  // namespace outcore::preload
