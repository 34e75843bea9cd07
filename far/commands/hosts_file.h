// HostsFile: the machines that lend memory to one program, and how much each lends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

inline constexpr uint64_t kHostBytesMin = uint64_t{16} << 20;  // a server takes some MiB for itself
inline constexpr uint64_t kHostBytesMax = uint64_t{1} << 50;
inline constexpr size_t kHostsMax = 128;

struct Host {
  std::string user;  // empty: none is given
  std::string name;  // a name or a numeric address, without brackets
  uint64_t bytes = 0;
  int line = 0;

  std::string title() const;  // "user@name"
};

// A machine on each line, "[USER@]HOST SIZE"; "#" begins a comment. The first machine is the one
// that computes; its size is what the program may hold there. Only the name in that line is looked
// up.
struct HostsFile {
  std::string path;
  Host own;
  std::vector<Host> others;  // at least one

  std::string place(const Host& host) const;  // "FILE:3"

  // Errors: EINVAL with file, line and remedy; those of opening and reading the file.
  static Result<HostsFile> read(const std::string& path);
};

}  // namespace outcore::cli
