// ObjectBytes: how a container of arrays keeps an object: a head that names its type, followed by
// an archive. Part of outcore/arrays_objects.h, which writes and reads the archives with cereal;
// this header needs no cereal. docs/reference/arrays-format.md has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "outcore/arrays.h"

namespace outcore::arrays {

// The text with control characters escaped, for error messages: names from files may contain
// anything.
std::string one_line(std::string_view text);

// A head for an archive of this type; append the archive to it. store_object_bytes fills in its
// checksums.
std::string object_head(std::string_view type);

// Stores `bytes`, a head and an archive; writes the checksums into the head. `shape`:
// ObjectShape::word() of the archive. Errors: as Arrays::store_whole; EINVAL (the type's name has
// more than 64 KiB).
Status store_object_bytes(Arrays& arrays, const std::string& name, std::string* bytes,
                          uint64_t shape);

struct ObjectBytes {
  std::string bytes;      // head and archive
  size_t archive_at = 0;  // where the archive begins
  uint64_t shape = 0;
  std::string_view archive() const { return std::string_view(bytes).substr(archive_at); }
};

// Errors: as Arrays::load; EINVAL (not an object, another type, or a newer format), EIO (damaged).
Result<ObjectBytes> load_object_bytes(const Arrays& arrays, const std::string& name,
                                      std::string_view type);

}  // namespace outcore::arrays
