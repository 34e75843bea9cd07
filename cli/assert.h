// Assert: what must hold in the command and its modules, or what they print would be wrong. In
// every build; any thread. What comes from outside (arguments, files, other processes) is never
// asserted: it gets a message.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace outcore::cli {

[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "outcore: bug: %s does not hold at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace outcore::cli

#define CLI_CHECK(condition)                         \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::outcore::cli::check_failed(#condition, __FILE__, __LINE__))
