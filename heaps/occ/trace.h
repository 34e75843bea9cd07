// Trace: what can be seen of a file's name from outside, to find out whether a command made the
// file anew. One thread.
#pragma once

#include <sys/stat.h>

#include <string>

namespace occ {

class Trace {
 public:
  explicit Trace(const std::string& path) {
    if (::stat(path.c_str(), &facts_) != 0) facts_ = {};
  }
  // Also for two names of nothing.
  bool operator==(const Trace& other) const {
    const struct stat &a = facts_, &b = other.facts_;
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
           is_same(a.st_mtim, b.st_mtim) && is_same(a.st_ctim, b.st_ctim);
  }

 private:
  static bool is_same(const timespec& a, const timespec& b) {
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
  }

  struct stat facts_ {};
};

}  // namespace occ
