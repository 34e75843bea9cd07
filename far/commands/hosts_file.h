// HostsFile: the machines that give memory to one program, and how much each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

inline constexpr uint64_t kHostBytesMin = uint64_t{16} << 20;  // a server takes some MiB itself
inline constexpr uint64_t kHostBytesMax = uint64_t{1} << 50;
inline constexpr size_t kHostsMax = 128;

struct Host {
  std::string user;  // empty: not said
  std::string name;  // a name or a numeric address, without brackets
  uint64_t bytes = 0;
  int line = 0;

  std::string title() const;  // "user@name"
};

// One machine a line, "[USER@]HOST SIZE"; "#" begins a comment. The first is the one that
// calculates, and its size what the program may hold there. Looks up the name of that line only.
struct HostsFile {
  std::string path;
  Host own;
  std::vector<Host> others;  // at least one

  std::string place(const Host& host) const;  // "FILE:3"

  // Errors: EINVAL with file, line and remedy; those of open and read.
  static Result<HostsFile> read(const std::string& path);
};

}  // namespace outcore::cli
