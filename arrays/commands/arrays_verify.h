// ArraysVerify: arrays beside their checksums, a line for each damage.
#pragma once

#include <string>

#include "outcore/arrays.h"
#include "outcore/result.h"

namespace outcore::cli {

struct ArraysVerify {
  std::string uri, name;  // no name: all of them
  bool is_json = false;
};

// Prints what it finds; the exit status: 0, or kFailed with damage.
int verify_arrays(const ArraysVerify& words);

// EIO: the array is damaged, and where. For those who copy it.
Status check_array(const Arrays& arrays, const std::string& name);

}  // namespace outcore::cli
