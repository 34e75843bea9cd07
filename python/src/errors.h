// Errors: how an outcore::Error becomes a Python exception.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "outcore/result.h"

namespace outcore::python {

// What an error with EINVAL is about: an argument of the call (ValueError), or the store (OSError).
enum class Blame : uint8_t { kArgument, kStore };

// The path that a URI names, for OSError.filename; the URI itself where it names none.
std::string file_name_of(const std::string& uri);

// Raises OSError(errno, message, filename), of the subclass that Python gives this errno; with
// EINVAL and Blame::kArgument ValueError(message). REQUIRES: the GIL.
[[noreturn]] void raise(const Error& error, const std::string& uri, Blame blame);

inline void require(const Status& status, const std::string& uri, Blame blame) {
  if (!status) raise(status.error(), uri, blame);
}

}  // namespace outcore::python
