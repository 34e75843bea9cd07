// Texts: how the C API hands out a text: into the program's buffer, with a final NUL.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "core/c/outcome.h"

namespace outcore::c {

// *needed_bytes (may be NULL) is what it takes. ERANGE: the buffer is too small, and nothing was
// written; a NULL buffer of 0 bytes only asks.
inline int give_text(const char* function, const std::string& text, char* buffer, size_t size_bytes,
                     size_t* needed_bytes) {
  if (needed_bytes != nullptr) *needed_bytes = text.size() + 1;
  if (buffer == nullptr && size_bytes == 0) return 0;
  if (buffer == nullptr) return fail_null(function, "buffer");
  if (text.size() >= size_bytes)
    return fail(ERANGE, std::string(function) + ": the text needs " +
                            std::to_string(text.size() + 1) + " bytes, and the buffer has " +
                            std::to_string(size_bytes));
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  return 0;
}

}  // namespace outcore::c
