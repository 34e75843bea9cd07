#include "core/c/outcome.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "outcore/outcore.h"

namespace outcore::c {
namespace {

constexpr size_t kTextBytesMax = 2048;
thread_local char last_error[kTextBytesMax];

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

int fail(int code, std::string_view message) noexcept {
  size_t size = std::min(message.size(), kTextBytesMax - 1);
  while (size < message.size() && size > 0 && continues_a_character(message[size])) --size;
  // The new message may contain the old one: memmove.
  if (size > 0) std::memmove(last_error, message.data(), size);
  last_error[size] = 0;
  return code == 0 ? -EIO : code > 0 ? -code : code;
}

int outcome(const Status& status) noexcept {
  return status.ok() ? 0 : fail(status.code(), status.message());
}

int fail_null(const char* function, const char* what) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s: %s is NULL", function, what);
  return -EINVAL;
}

int fail_thrown(const char* function, int code, const char* why) noexcept {
  std::snprintf(last_error, sizeof last_error, "%s: %s", function, why);
  return code > 0 ? -code : -EIO;
}

}  // namespace outcore::c

const char* oc_last_error(void) { return outcore::c::last_error; }
