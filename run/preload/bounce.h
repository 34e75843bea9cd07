// Bounce: buffers that system calls use in place of managed memory. With in-thread delivery a
// system call cannot wait for an absent page. With any delivery the kernel must not be inside of a
// page that it is about to change, nor write to a page without our knowledge (O_DIRECT).
#pragma once

#include <sys/uio.h>

#include <cstddef>

namespace outcore::preload {

// System calls must not fault on managed memory. Set when a region is mapped for which this holds.
bool needs_bounce();
void set_needs_bounce();

class Bounce {
 public:
  static constexpr size_t kBytesMax = 1 << 20;  // a larger transfer is done in pieces
  enum class Size { kPiece, kWhole };

  // Has at most kBytesMax, unless it must be whole: then memory for as much as the kernel transfers
  // with one call, of which only what is touched costs any.
  explicit Bounce(size_t size_bytes, Size size = Size::kPiece);
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;
  bool is_there() const { return bytes_ != nullptr; }
  std::byte* data() { return bytes_; }
  // The kernel may read the buffer after the call (MSG_ZEROCOPY, vmsplice): it is not used again.
  void lend() { is_lent_ = true; }
  size_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  size_t size_ = 0;
  size_t mapped_bytes_ = kBytesMax;
  bool is_lent_ = false;
};

// What a socket or a pipe holds, which one read brings: who is told only of what arrives later
// takes a short read for all. 0: nothing, or the descriptor is of another kind.
size_t bytes_to_read(int fd);

// Treats a list of buffers as one: copies [at, at + size) out of it or into it. False: a part of it
// cannot be touched, for which a system call would return EFAULT.
size_t total_of(const iovec* list, int count);
bool gather(const iovec* list, int count, size_t at, std::byte* into, size_t size_bytes);
bool scatter(const iovec* list, int count, size_t at, const std::byte* from, size_t size_bytes);

}  // namespace outcore::preload
