// FileVersion: a regular file in the state in which it is: one that is written or replaced is
// another.
#pragma once

#include <cstdint>

namespace outcore::store {

struct FileVersion {
  uint64_t device = 0, inode = 0, size_bytes = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileVersion&) const = default;
};

}  // namespace outcore::store
