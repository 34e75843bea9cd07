#include "core/store/sparse_metadata.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <span>

#include "core/base/error.h"
#include "core/base/json_fields.h"
#include "core/base/units.h"
#include "core/os/descriptor_place.h"
#include "core/os/file_calls.h"

namespace outcore::store {
namespace {

constexpr size_t kFileBytesMax = 64 << 10;
constexpr const char* kTemporaryName = "outcore-sparse.json.new";

// Reads the whole file. 0 or -errno.
int read_text(int folder_fd, std::string& text) {
  const int fd =
      os::above_standard(::openat(folder_fd, SparseMetadata::kFileName, O_RDONLY | O_CLOEXEC));
  if (fd < 0) return -errno;
  text.resize(kFileBytesMax);
  size_t length = 0;
  ssize_t got = 1;
  while (got > 0 && length < text.size()) {
    got = os::repeat([&] { return ::read(fd, text.data() + length, text.size() - length); });
    if (got > 0) length += static_cast<size_t>(got);
  }
  ::close(fd);
  text.resize(length);
  return static_cast<int>(std::min<ssize_t>(got, 0));
}

int write_text(int fd, const std::string& text) {
  if (const int error = os::write_all(fd, 0, std::as_bytes(std::span(text))); error != 0)
    return error;
  return ::fsync(fd) == 0 ? 0 : -errno;
}

}  // namespace

Status check_metadata(const SparseMetadata& metadata, const std::string& name) {
  if (!base::is_power_of_two(metadata.segment_bytes) ||
      metadata.segment_bytes < base::kSystemPage || metadata.segment_bytes > (uint64_t{1} << 60))
    return Error{EINVAL, name + ": a segment of " + std::to_string(metadata.segment_bytes) +
                             " bytes will not do: it is a power of two, from 4k to 1P"};
  if (metadata.size_bytes > INT64_MAX)
    return Error{EINVAL, name + ": " + std::to_string(metadata.size_bytes) +
                             " bytes are more than a store can have"};
  if (metadata.segment_count() > SparseMetadata::kSegmentCountMax) {
    const uint64_t least =
        std::bit_ceil((metadata.size_bytes - 1) / SparseMetadata::kSegmentCountMax + 1);
    return Error{EINVAL, name + ": too many segments for " +
                             base::format_bytes(metadata.size_bytes) +
                             ": make them larger, segment=" + std::to_string(least) + " at least"};
  }
  return {};
}

Result<std::optional<SparseMetadata>> read_metadata(int folder_fd, const std::string& name) {
  std::string text;
  const int error = read_text(folder_fd, text);
  if (error == -ENOENT) return std::optional<SparseMetadata>();
  const std::string file = name + "/" + SparseMetadata::kFileName;
  if (error != 0) return base::system_error(error, "read " + file);
  const auto corrupt = [&](const std::string& why) {
    return Error{EINVAL, file + " is corrupt (" + why +
                             "): restore it from a copy, the segments alone do not show the size"};
  };
  const auto json = base::Json::parse(text);
  if (!json) return corrupt(json.message());
  base::JsonFields fields(json.value());
  if (fields.get<std::string>("format") != "outcore-sparse")
    fields.refuse("format", "outcore-sparse");
  const auto version = fields.get<uint64_t>("version");
  SparseMetadata metadata;
  metadata.size_bytes = fields.get<uint64_t>("size_bytes");
  metadata.segment_bytes = fields.get<uint64_t>("segment_bytes");
  if (!fields.ok()) return corrupt(fields.error().message);
  if (version > SparseMetadata::kVersion)
    return Error{EINVAL, file + " has version " + std::to_string(version) +
                             ", this Outcore knows " + std::to_string(SparseMetadata::kVersion) +
                             ": use the Outcore that wrote it, or a newer one"};
  if (Status status = check_metadata(metadata, file); !status) return status.error();
  return std::optional(metadata);
}

int write_metadata(int folder_fd, const SparseMetadata& metadata) {
  const base::Json json = {{"format", "outcore-sparse"},
                           {"version", SparseMetadata::kVersion},
                           {"size_bytes", metadata.size_bytes},
                           {"segment_bytes", metadata.segment_bytes}};
  const int fd = os::above_standard(
      ::openat(folder_fd, kTemporaryName, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd < 0) return -errno;
  int error = write_text(fd, json.dump({.indent = 2, .is_as_added = true}) + "\n");
  ::close(fd);
  if (error == 0 &&
      ::renameat(folder_fd, kTemporaryName, folder_fd, SparseMetadata::kFileName) != 0)
    error = -errno;
  if (error != 0) {
    ::unlinkat(folder_fd, kTemporaryName, 0);
    return error;
  }
  return ::fsync(folder_fd) == 0 || errno == EINVAL ? 0 : -errno;
}

}  // namespace outcore::store
