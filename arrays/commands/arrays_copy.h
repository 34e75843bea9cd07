// ArraysCopy: arrays of a container into files of other formats, and out of them. Both go piece by
// piece: an array may be larger than memory.
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
  // Of an import: ArrayOptions::compress, and "64,64,64" for arrays with so many dimensions.
  std::string compress, tiles;
};

// What is at the file stays until all is written; what is not finished goes.
Status export_arrays(const ArraysCopy& copy);
// All of them, or none. Notes of what is left out go to standard error.
Status import_arrays(const ArraysCopy& copy);

// Of an array, or of the container (no name).
Result<Texts> load_attributes(const Arrays& arrays, const std::string& name);

}  // namespace outcore::cli
