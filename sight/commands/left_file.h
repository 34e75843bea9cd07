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

// Whether it is the file of this path, as far as that is published: of a long path the beginning.
inline bool is_at(const LeftFile& file, std::string_view path) {
  constexpr size_t kBytesMax = 255;  // core/published/layout.h
  constexpr std::string_view kCut = "…";
  if (path.size() <= kBytesMax || !file.path.ends_with(kCut)) return path == file.path;
  return path.starts_with(std::string_view(file.path).substr(0, file.path.size() - kCut.size()));
}

}  // namespace outcore::cli
