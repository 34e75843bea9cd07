// Texts: returns a text through a buffer of the C API's caller, with a final NUL. Any thread.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "core/c/outcome.h"

namespace outcore::c {

// *needed_bytes (may be NULL) becomes the size with the NUL. ERANGE: the buffer is too small;
// nothing was written. With a NULL buffer of 0 bytes it only returns the size.
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
