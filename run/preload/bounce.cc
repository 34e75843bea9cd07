#include "run/preload/bounce.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

#include "core/base/units.h"
#include "core/os/signal_delivery.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

std::atomic<bool> is_needed{false};

constexpr size_t kTransferBytesMax = INT_MAX & ~size_t{base::kSystemPage - 1};  // read(2)

// Buffers that wait to be used again: each slot holds one of kBytesMax, or none.
constexpr int kWaitingMax = 8;
std::atomic<std::byte*> waiting[kWaitingMax];

template <typename F>
void for_each_piece(const iovec* list, int count, size_t at, size_t size_bytes, const F& f) {
  size_t done = 0;
  for (int i = 0; i < count && done < size_bytes; ++i) {
    const size_t bytes = list[i].iov_len;
    if (at >= bytes) {
      at -= bytes;
      continue;
    }
    const size_t n = std::min(bytes - at, size_bytes - done);
    f(static_cast<std::byte*>(list[i].iov_base) + at, done, n);
    done += n;
    at = 0;
  }
}

}  // namespace

bool needs_bounce() { return is_needed.load(std::memory_order_relaxed); }
void set_needs_bounce() { is_needed.store(true, std::memory_order_relaxed); }

Bounce::Bounce(size_t size_bytes, Size size)
    : size_(std::min(size_bytes, size == Size::kWhole ? kTransferBytesMax : kBytesMax)) {
  if (size_ > kBytesMax)
    mapped_bytes_ = base::round_up(size_, base::kSystemPage);
  else
    for (std::atomic<std::byte*>& slot : waiting)
      if ((bytes_ = slot.exchange(nullptr)) != nullptr) return;
  void* p = real().mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p != MAP_FAILED) bytes_ = static_cast<std::byte*>(p);
}

Bounce::~Bounce() {
  if (bytes_ == nullptr) return;
  for (std::atomic<std::byte*>& slot : waiting) {
    std::byte* none = nullptr;
    if (is_lent_ || mapped_bytes_ != kBytesMax) break;
    if (slot.compare_exchange_strong(none, bytes_)) return;
  }
  real().munmap(bytes_, mapped_bytes_);
}

size_t bytes_to_read(int fd) {
  const int before = errno;
  struct stat about;
  int queued = 0;
  const bool is_known = ::fstat(fd, &about) == 0 &&
                        (S_ISSOCK(about.st_mode) || S_ISFIFO(about.st_mode)) &&
                        real().ioctl(fd, FIONREAD, &queued) == 0;
  errno = before;
  return is_known && queued > 0 ? static_cast<size_t>(queued) : 0;
}

size_t total_of(const iovec* list, int count) {
  size_t total = 0;
  for (int i = 0; i < count; ++i) total += list[i].iov_len;
  return total;
}

bool gather(const iovec* list, int count, size_t at, std::byte* into, size_t size_bytes) {
  bool is_done = true;
  for_each_piece(list, count, at, size_bytes, [&](std::byte* p, size_t done, size_t n) {
    is_done = is_done && os::copy_or_fail(into + done, p, n);
  });
  return is_done;
}

bool scatter(const iovec* list, int count, size_t at, const std::byte* from, size_t size_bytes) {
  bool is_done = true;
  for_each_piece(list, count, at, size_bytes, [&](std::byte* p, size_t done, size_t n) {
    is_done = is_done && os::copy_or_fail(p, from + done, n);
  });
  return is_done;
}

}  // namespace outcore::preload
