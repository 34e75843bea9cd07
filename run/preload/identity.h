// Identity: which file a descriptor or a path refers to, whatever the file's name.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <tuple>

namespace outcore::preload {

struct Identity {
  uint64_t device = 0, inode = 0;
  bool operator<(const Identity& o) const {
    return std::tie(device, inode) < std::tie(o.device, o.inode);
  }
  bool operator==(const Identity& o) const { return device == o.device && inode == o.inode; }
};

inline Identity identity_of(const struct stat& about) {
  if (S_ISBLK(about.st_mode)) return {~uint64_t{0}, about.st_rdev};
  return {about.st_dev, about.st_ino};
}

}  // namespace outcore::preload
