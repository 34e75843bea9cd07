// RecordFile: a file that records of runs are appended to, a line each; nothing is appended to one
// that is something else. Any thread. In a header, as the command has no more of the core.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace outcore::base {

inline constexpr char kNoRecordFile[] = "it is not a record of runs: name another file";

// Whether it is empty, or begins as a record does; also if that cannot be read. `file`: opened.
inline bool may_hold_records(int file) {
  // The rest may be missing, as of a full disk.
  constexpr std::string_view kBeginning = R"({"format":"outcore-run")";
  char bytes[64];
  const ssize_t size = ::pread(file, bytes, sizeof bytes, 0);
  if (size <= 0) return true;
  std::string text(bytes, static_cast<size_t>(size));
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
  const size_t compared = std::min(text.size(), kBeginning.size());
  return kBeginning.substr(0, compared) == std::string_view(text).substr(0, compared);
}

// The same of a path; true, too, if there is no such file, or it is not a regular one.
inline bool may_hold_records(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return true;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (file < 0) return true;
  const bool may_hold = may_hold_records(file);
  ::close(file);
  return may_hold;
}

}  // namespace outcore::base
