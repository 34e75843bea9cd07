// Errors: texts in the form "attempted: reason; remedy".
#pragma once

#include <string>
#include <string_view>

#include "outcore/result.h"

namespace outcore::base {

// `code` is an errno value, positive, or negative as the kernel returns it. Example: "open /x: No
// such file or directory".
Error system_error(int code, const std::string& attempted, const std::string& remedy = {});
// The candidate most similar to `word` by edit distance, for messages ("did you mean …?"); empty if
// none is similar.
std::string nearest(std::string_view word, const std::string_view* candidates, size_t count);

}  // namespace outcore::base
