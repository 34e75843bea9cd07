// file_size_limit: the size to which files of this process may grow (RLIMIT_FSIZE). Past it the
// kernel refuses a write by a call, of bytes that are there already, too, and sends SIGXFSZ; what
// is written through a mapping of its own it stores. So nothing of ours may lie there.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace outcore::preload {

// UINT64_MAX: there is no limit.
inline uint64_t file_size_limit() {
  rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur;
}

}  // namespace outcore::preload
