// ArraysVerify: compares arrays with their checksums, and prints a line for each damage.
#pragma once

#include <string>

#include "outcore/arrays.h"
#include "outcore/result.h"

namespace outcore::cli {

struct ArraysVerify {
  std::string uri, name;  // empty name: all arrays
  bool is_json = false;
};

// Prints what it finds. Returns the exit status: 0, or kFailed if there is damage.
int verify_arrays(const ArraysVerify& words);

// EIO: the array is damaged, and where. For commands that copy it.
Status check_array(const Arrays& arrays, const std::string& name);

}  // namespace outcore::cli
