// DemoFiles: data that every machine has: its own files, one behind the other.
#pragma once

#include <cstdint>
#include <string>

#include "outcore/result.h"

namespace outcore::cli {

// Writes the regular files below `folder` that can be read to `to`, until it has `size_bytes`.
// Returns how many it has, a multiple of 4 KiB. Errors: what the system said of `to`.
Result<uint64_t> gather_files(const std::string& folder, uint64_t size_bytes,
                              const std::string& to);

}  // namespace outcore::cli
