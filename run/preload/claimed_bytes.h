// ClaimedBytes: the bytes at a descriptor's own position that a transfer of the program is about,
// from before it begins until it has ended. What must be stored or dropped for a transfer has to be
// known before; but between a look at the position and the call, other threads, and processes that
// have the same descriptor, move it. So the position is moved first, in one step, by all that the
// call may transfer, the transfer is made at the place where it was, and the rest is given back. As
// with the kernel, each byte is in one transfer only. One thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace outcore::preload {

class ClaimedBytes {
 public:
  static constexpr size_t kBytesMax = 0x7ffff000;  // of one call: the kernel's MAX_RW_COUNT

  ClaimedBytes() = default;
  ~ClaimedBytes() { give_back(0); }
  ClaimedBytes(const ClaimedBytes&) = delete;
  ClaimedBytes& operator=(const ClaimedBytes&) = delete;

  // At most kBytesMax of a regular file, and once. False, and nothing is claimed: the kernel must
  // tell whether they can be transferred at all.
  bool claim(int fd, size_t size_bytes);
  bool is_claimed() const { return fd_ >= 0; }
  off_t offset() const { return offset_; }

  // So much was transferred, or -1: the rest is given back. Keeps errno. REQUIRES: no more than was
  // claimed.
  void give_back(ssize_t transferred);

 private:
  int fd_ = -1;
  off_t offset_ = 0;
  size_t size_bytes_ = 0;
};

}  // namespace outcore::preload
