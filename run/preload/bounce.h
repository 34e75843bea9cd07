// Bounce: memory that system calls may use in place of ours. In in-thread delivery a system call
// cannot wait for an absent page; and in every delivery the kernel must not be caught in a page
// that it is about to change, nor write to one behind our back (O_DIRECT).
#pragma once

#include <sys/uio.h>

#include <cstddef>

namespace outcore::preload {

// System calls cannot be left to fault on what is ours. Set when such a region is mapped.
bool needs_bounce();
void set_needs_bounce();

class Bounce {
 public:
  static constexpr size_t kBytesMax = 1 << 20;  // a larger transfer goes in pieces

  explicit Bounce(size_t size_bytes);  // at most kBytesMax are there
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;
  bool is_there() const { return bytes_ != nullptr; }
  std::byte* data() { return bytes_; }
  // The kernel may read it after the call (MSG_ZEROCOPY, vmsplice): nobody else gets it.
  void lend() { is_lent_ = true; }
  size_t size() const { return size_; }

 private:
  std::byte* bytes_ = nullptr;
  size_t size_ = 0;
  bool is_lent_ = false;
};

// A list of buffers as one: copies [at, at + size) out of it, or into it. False: some of it cannot
// be touched, which is EFAULT to a system call.
size_t total_of(const iovec* list, int count);
bool gather(const iovec* list, int count, size_t at, std::byte* into, size_t size_bytes);
bool scatter(const iovec* list, int count, size_t at, const std::byte* from, size_t size_bytes);

}  // namespace outcore::preload
