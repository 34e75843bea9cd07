// Check: what must hold in a benchmark, or its figures mean nothing. In every build; any thread.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace outcore::bench {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "outcore: bug: %s does not hold at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace outcore::bench

#define BENCH_CHECK(condition)                       \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::outcore::bench::check_failed(#condition, __FILE__, __LINE__))
