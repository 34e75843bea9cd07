// SparseMetadata: the small file that describes a folder of segments.
//
//   outcore-sparse.json: {"format": "outcore-sparse", "version": 1,
//                         "size_bytes": N, "segment_bytes": M}
//
// It is replaced as a whole (temporary file, fsync, rename, fsync of the folder): after a crash
// there is the old file or the new one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "outcore/result.h"

namespace outcore::store {

struct SparseMetadata {
  static constexpr const char* kFileName = "outcore-sparse.json";
  static constexpr int kVersion = 1;
  static constexpr uint64_t kSegmentCountMax = uint64_t{1} << 26;

  uint64_t size_bytes = 0;
  uint64_t segment_bytes = 0;

  uint64_t segment_count() const { return (size_bytes + segment_bytes - 1) / segment_bytes; }
};

// nullopt if the folder has none. `name` is for messages. Errors: EINVAL (corrupt, a newer version,
// impossible values), and those of the system.
Result<std::optional<SparseMetadata>> read_metadata(int folder_fd, const std::string& name);
// 0 or -errno.
int write_metadata(int folder_fd, const SparseMetadata& metadata);

// Errors: EINVAL (the segment size is not a power of two from 4 KiB on; or too many segments: the
// message gives the smallest segment size that works).
Status check_metadata(const SparseMetadata& metadata, const std::string& name);

}  // namespace outcore::store
