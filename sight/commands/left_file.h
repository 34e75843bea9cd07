// Left files: what is said of files whose mappings are the kernel's.
#pragma once

#include <string>
#include <string_view>

#include "outcore/sight.h"

namespace outcore::cli {

inline constexpr std::string_view kHandedBack = "handed back: ";  // as a reason begins

inline const char* how_left(const LeftFile& file) {
  return file.reason.starts_with(kHandedBack) ? "handed back to the kernel" : "left to the kernel";
}
inline std::string why_left(const LeftFile& file) {
  return file.reason.substr(file.reason.starts_with(kHandedBack) ? kHandedBack.size() : 0);
}

}  // namespace outcore::cli
