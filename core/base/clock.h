// Clock: monotonic time in nanoseconds. Any thread; the fault path.
#pragma once

#include <time.h>

#include <cstdint>

namespace outcore::base {

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

}  // namespace outcore::base
