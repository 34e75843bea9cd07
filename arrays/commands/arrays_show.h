// ArraysShow: shows a slice of an array as a picture and a line of text.
#pragma once

#include <string>

#include "outcore/result.h"

namespace outcore::cli {

struct ArraysShow {
  std::string uri, name, slice, picture, colors = "viridis", range;
  bool may_replace = false, is_json = false;
};

// Prints what the slice is. A single value is printed, and not drawn.
Status show_array(const ArraysShow& show);

}  // namespace outcore::cli
