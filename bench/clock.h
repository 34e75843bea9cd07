// Clock: monotonic time; the same in all processes of the machine. Any thread.
#pragma once

#include <time.h>

#include <cstdint>

namespace outcore::bench {

inline uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

inline double seconds_since(uint64_t start_ns) {
  return static_cast<double>(now_ns() - start_ns) * 1e-9;
}

}  // namespace outcore::bench
