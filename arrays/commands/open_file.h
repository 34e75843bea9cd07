// OpenFile: opens containers and files of other formats, so that errors of all are reported in one
// way: what failed on which file, why, and the remedy. Exit status 1, as it is not wrong usage.
#pragma once

#include <memory>
#include <string>

#include "arrays/commands/array_file.h"
#include "outcore/arrays.h"

namespace outcore::cli {

Result<Arrays> open_container(const std::string& uri, ArraysMode mode = ArraysMode::kRead);
// REQUIRES: `format` is that of the path.
Result<std::unique_ptr<ArrayReader>> open_file(const ArrayFormat& format, const std::string& path);

// The same error, of a file: EINVAL, which stands for wrong usage, becomes EIO.
Error as_fault_of_file(Error error);

}  // namespace outcore::cli
