// DescriptorPlace: chooses the numbers of the library's own file descriptors. Any thread.
#pragma once

namespace outcore::os {

// Moves a descriptor that was just opened to a number other than 0, 1 or 2, and returns it. If a
// program was started with one of these closed, the next open() gets it, and what the program
// prints would be written into a store. `fd` is the result of the call, and may be -1. Returns -1
// with errno if the process has no other number left; then the descriptor is closed.
int above_standard(int fd);

// Descriptor: one that is moved so, and closed at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(above_standard(fd)) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Set by `outcore run`, whose descriptors must not take numbers that the program may use: moves a
// descriptor that the library opened without the C library's functions, and returns its new number.
// Set before any descriptor is opened. nullptr: they stay.
extern int (*place_descriptor)(int fd);

}  // namespace outcore::os
