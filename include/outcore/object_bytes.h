// ObjectBytes: how a container of arrays keeps an object: a head that tells its type, and an
// archive. Of outcore/arrays_objects.h, which makes and reads the archives by cereal; this needs
// none. docs/reference/arrays-format.md has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "outcore/arrays.h"

namespace outcore::arrays {

// As an error says it: others' names and words may have anything in them.
std::string one_line(std::string_view text);

// A head for an archive of this type, which is appended to it. Its sums come by store_object_bytes.
std::string object_head(std::string_view type);

// `bytes`: a head and an archive; the sums are written into the head. `shape` tells what the
// archive consists of: a word of the archive's own. Errors: as Arrays::store_whole; EINVAL (a type
// whose name has more than 64 KiB).
Status store_object_bytes(Arrays& arrays, const std::string& name, std::string* bytes,
                          uint64_t shape);

struct ObjectBytes {
  std::string bytes;      // all of them
  size_t archive_at = 0;  // where the archive begins
  uint64_t shape = 0;
  std::string_view archive() const { return std::string_view(bytes).substr(archive_at); }
};

// Errors: as Arrays::load; EINVAL (no object, one of another type, a newer format), EIO (damaged).
Result<ObjectBytes> load_object_bytes(const Arrays& arrays, const std::string& name,
                                      std::string_view type);

}  // namespace outcore::arrays
