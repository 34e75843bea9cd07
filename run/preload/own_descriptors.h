// OwnDescriptors: the library's own file descriptors. They have high numbers, so that the program's
// numbers are the same as without the library, and the program cannot close them. Any thread.
#pragma once

#include <vector>

namespace outcore::preload {

class OwnDescriptors {
 public:
  static constexpr int kDescriptorsMax = 1 << 16;  // higher numbers are not protected

  // Moves a new descriptor to a high number and remembers it; -1 stays -1. errno is kept.
  static int keep(int fd);
  // Remembers a descriptor without moving it.
  static void mark(int fd);
  static bool has(int fd);
  static void forget(int fd);
  // The lowest of them at or above `from`; kDescriptorsMax if there is none.
  static int next(int from);
};

// While it exists, a new descriptor of its thread gets a high number at once. To move a descriptor
// afterwards would close one of the file, and that would drop the POSIX locks that the process
// holds on the file. So one that gets a low number nevertheless, as another thread has just closed
// it, stays there.
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
