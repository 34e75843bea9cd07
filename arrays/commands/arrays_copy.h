// ArraysCopy: copies arrays of a container into files of other formats, and back, piece by piece:
// an array may be larger than memory.
#pragma once

#include <string>
#include <vector>

#include "arrays/commands/array_file.h"
#include "outcore/arrays.h"

namespace outcore::cli {

struct ArraysCopy {
  std::string uri, file, slice;
  std::vector<std::string> names;  // empty: all
  bool may_replace = false;
  // For an import: ArrayOptions::compress, and "64,64,64" for arrays with so many dimensions.
  std::string compress, tiles;
};

// An existing file stays until everything is written. An unfinished file is removed.
Status export_arrays(const ArraysCopy& copy);
// Imports all arrays, or none. What is left out is reported on standard error.
Status import_arrays(const ArraysCopy& copy);

// The attributes of an array, or of the container (empty name).
Result<Texts> load_attributes(const Arrays& arrays, const std::string& name);

}  // namespace outcore::cli
