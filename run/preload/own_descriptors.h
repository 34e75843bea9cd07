// OwnDescriptors: the library's own file descriptors. They have high numbers, so that the program's
// are what they would be without us, and the program cannot close them. Any thread.
#pragma once

#include <vector>

namespace outcore::preload {

class OwnDescriptors {
 public:
  static constexpr int kDescriptorsMax = 1 << 16;  // above them a descriptor is not protected

  // Moves a new descriptor to a high number and remembers it; -1 stays -1. errno is kept.
  static int keep(int fd);
  // Remembers one where it is.
  static void mark(int fd);
  static bool has(int fd);
  static void forget(int fd);
  // The lowest of ours at or above `from`; kDescriptorsMax if there is none.
  static int next(int from);
};

// While it lives what is opened gets a high number at once: to move a descriptor is to close one of
// the file, which drops the POSIX locks that the process holds on it.
class LowNumbersTaken {
 public:
  LowNumbersTaken();
  ~LowNumbersTaken();
  LowNumbersTaken(const LowNumbersTaken&) = delete;
  LowNumbersTaken& operator=(const LowNumbersTaken&) = delete;

 private:
  std::vector<int> taken_;
};

}  // namespace outcore::preload
