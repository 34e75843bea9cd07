#include "core/os/memory_advice.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "core/base/assert.h"
#include "core/os/at_fork.h"
#include "core/os/descriptor_place.h"

namespace outcore::os {
namespace {

// A pidfd of this process (PIDFD_SELF_THREAD_GROUP is newer than process_madvise), opened once in
// each: a forked child that used its parent's would advise that. -1: there is none just now.
int self() {
  static std::atomic<uint64_t> opened{0};  // generation and descriptor
  const uint64_t generation = process_generation();
  uint64_t seen = opened.load(std::memory_order_acquire);
  if (seen >> 32 == generation) return static_cast<int>(seen & 0xFFFFFFFF);
  const int pidfd = above_standard(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (pidfd < 0) return pidfd;
  if (opened.compare_exchange_strong(seen, generation << 32 | static_cast<uint32_t>(pidfd)))
    return pidfd;
  ::close(pidfd);
  return seen >> 32 == generation ? static_cast<int>(seen & 0xFFFFFFFF) : -1;
}

int advise_one(const iovec& range, int advice) {
  while (::madvise(range.iov_base, range.iov_len, advice) != 0)
    if (errno != EAGAIN && errno != EINTR) return -errno;
  return 0;
}

int advise_batch(iovec* range, size_t count, int advice, bool has_batched_advice) {
  while (count > 0 && has_batched_advice && count > 1) {
    const long done = ::syscall(SYS_process_madvise, self(), range, count, advice, 0);
    if (done <= 0) break;
    for (size_t left = static_cast<size_t>(done); left > 0;) {
      OC_CHECK(count != 0);
      const size_t step = left < range->iov_len ? left : range->iov_len;
      range->iov_base = static_cast<char*>(range->iov_base) + step;
      range->iov_len -= step;
      left -= step;
      if (range->iov_len == 0) ++range, --count;
    }
  }
  for (; count > 0; ++range, --count)
    if (const int result = advise_one(*range, advice); result != 0) return result;
  return 0;
}

// No range may cover everything that one page table maps: the written bits might be lost with the
// table (docs/internals/kernel-facts.md, zap_of_a_table).
constexpr uint64_t kRangeBytesMax = 1 << 20;

}  // namespace

int advise_all(std::span<const Piece> pieces, int advice, bool has_batched_advice) {
  constexpr size_t kRanges = 128;  // the array is on a signal stack
  iovec range[kRanges];
  size_t count = 0;
  for (const Piece& piece : pieces) {
    std::byte* const end = piece.address + piece.size_bytes;
    OC_CHECK(piece.address != nullptr);
    OC_CHECK(piece.size_bytes != 0);
    OC_ASSERT(reinterpret_cast<uintptr_t>(piece.address) % 4096 == 0);
    for (std::byte* at = piece.address; at < end;) {
      const uint64_t to_edge = kRangeBytesMax - reinterpret_cast<uint64_t>(at) % kRangeBytesMax;
      const auto size_bytes = std::min(static_cast<uint64_t>(end - at), to_edge);
      iovec* const last = count == 0 ? nullptr : &range[count - 1];
      const bool is_joined = last != nullptr && to_edge != kRangeBytesMax &&
                             static_cast<std::byte*>(last->iov_base) + last->iov_len == at;
      if (!is_joined && count == kRanges) {
        if (const int r = advise_batch(range, count, advice, has_batched_advice); r != 0) return r;
        count = 0;
      }
      if (is_joined)
        last->iov_len += size_bytes;
      else
        range[count++] = {at, size_bytes};
      OC_CHECK(count <= kRanges);
      at += size_bytes;
    }
  }
  return advise_batch(range, count, advice, has_batched_advice);
}

void unlock_range(const Piece& piece) { ::munlock(piece.address, piece.size_bytes); }

}  // namespace outcore::os
