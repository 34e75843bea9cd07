// FileVersion: a regular file in the state in which it is: one that is written or replaced is
// another. Or what another store holds.
#pragma once

#include <cstdint>
#include <string_view>

namespace outcore::store {

struct FileVersion {
  uint64_t device = 0, inode = 0, size_bytes = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileVersion&) const = default;

  // 0, -ENOTSUP (no regular file) or -errno.
  static int of(int fd, FileVersion* version);
  // Of a store, by its contents_id(): no file is the same, nor is what has another one. REQUIRES:
  // it is not empty.
  static FileVersion of_contents(std::string_view contents_id, uint64_t size_bytes);
  // Whether it may change again and look the same: times of change may be as coarse as a tick of
  // the kernel, or a second, and a write that is under way has set its time already.
  bool is_fresh() const;
};

}  // namespace outcore::store
