#include "core/base/assert.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace outcore::base {
namespace {

void say(const char* text) {
  const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(ignored);
}

}  // namespace

void assertion_failed(const char* condition, const char* file, int line) {
  char digits[16];
  char* p = digits + sizeof digits;
  *--p = 0;
  do {
    *--p = static_cast<char>('0' + line % 10);
    line /= 10;
  } while (line > 0);
  say("outcore: bug: ");
  say(condition);
  say(" does not hold at ");
  say(file);
  say(":");
  say(p);
  say("\n");
  std::abort();
}

}  // namespace outcore::base
