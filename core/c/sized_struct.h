// Sized struct: structs of the C API that may be older or newer than this library. The first field
// of a struct is its size; fields that the program does not know count as not set.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "core/base/assert.h"
#include "outcore/result.h"

namespace outcore::c {

// Copies the fields that both know from *from to *into; from may be NULL: nothing is set. Errors:
// EINVAL (shorter than in release 0.1: it was never initialised), E2BIG (the program is newer, and
// has set a field that this library does not know).
template <typename T>
Status take_struct(const T* from, size_t first_release_bytes, const char* name, T* into) {
  *into = T{};
  if (from == nullptr) return {};
  const size_t size_bytes = from->struct_bytes;
  if (size_bytes < first_release_bytes)
    return Error{EINVAL, std::string(name) + ".struct_bytes is " + std::to_string(size_bytes) +
                             ": start the struct with " + name + "_init()"};
  const auto* bytes = reinterpret_cast<const char*>(from);
  for (size_t i = sizeof(T); i < size_bytes; ++i)
    if (bytes[i] != 0)
      return Error{E2BIG, std::string(name) +
                              " sets a field that this release does not know: run " +
                              "it with the Outcore it was built with, or a newer one"};
  std::memcpy(static_cast<void*>(into), from, std::min(size_bytes, sizeof(T)));
  return {};
}

// Copies `from` to the program's struct, as far as it reaches; fields that only the program knows
// become 0. REQUIRES: into->struct_bytes was checked.
template <typename T>
void give_struct(const T& from, T* into) {
  const size_t size_bytes = into->struct_bytes;
  OC_CHECK(size_bytes >= sizeof into->struct_bytes);
  std::memset(static_cast<void*>(into), 0, size_bytes);
  std::memcpy(static_cast<void*>(into), &from, std::min(size_bytes, sizeof from));
  into->struct_bytes = size_bytes;
}

}  // namespace outcore::c
