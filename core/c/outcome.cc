#include "core/c/outcome.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "outcore/outcore.h"

namespace outcore::c {
namespace {

constexpr size_t kTextBytesMax = 2048;

// Of a thread. Memory of its own, because a library that dlopen() loads has few bytes for its
// thread-local variables; given back by a key of threads, for which the first words of a thread
// need no other memory, as those of a C++ destructor would.
thread_local char* text = nullptr;
thread_local const char* without_text = "";

void free_text(void* of_thread) {
  std::free(of_thread);
  text = nullptr;
}

// nullptr: there is no memory for it.
char* text_of_thread() {
  static const auto key = [] {
    pthread_key_t made{};
    return ::pthread_key_create(&made, free_text) == 0 ? made : pthread_key_t(-1);
  }();
  if (text != nullptr) return text;
  char* const fresh = static_cast<char*>(std::calloc(1, kTextBytesMax));
  if (fresh != nullptr && ::pthread_setspecific(key, fresh) != 0) return std::free(fresh), nullptr;
  return text = fresh;
}

template <typename... Values>
void print(int code, const char* form, Values... values) {
  if (char* const into = text_of_thread(); into != nullptr)
    std::snprintf(into, kTextBytesMax, form, values...);
  else
    without_text = ::strerrordesc_np(code);
}

bool continues_a_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

int fail(int code, std::string_view message) noexcept {
  const int result = code == 0 ? -EIO : code > 0 ? -code : code;
  char* const into = text_of_thread();
  if (into == nullptr) return without_text = ::strerrordesc_np(-result), result;
  size_t size = std::min(message.size(), kTextBytesMax - 1);
  while (size < message.size() && size > 0 && continues_a_character(message[size])) --size;
  // The new message may contain the old one: memmove.
  if (size > 0) std::memmove(into, message.data(), size);
  into[size] = 0;
  return result;
}

int outcome(const Status& status) noexcept {
  return status.ok() ? 0 : fail(status.code(), status.message());
}

int fail_null(const char* function, const char* what) noexcept {
  print(EINVAL, "%s: %s is NULL", function, what);
  return -EINVAL;
}

int fail_thrown(const char* function, int code, const char* why) noexcept {
  print(code > 0 ? code : EIO, "%s: %s", function, why);
  return code > 0 ? -code : -EIO;
}

}  // namespace outcore::c

const char* oc_last_error(void) {
  return outcore::c::text != nullptr ? outcore::c::text : outcore::c::without_text;
}
