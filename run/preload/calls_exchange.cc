// Calls with many buffers or between processes, and random bytes. Where system calls cannot wait
// for managed memory (in-thread), the bytes pass through other memory. See calls.h.
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/signal_delivery.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/later_writes.h"
#include "run/preload/leaving.h"
#include "run/preload/window.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

bool is_any_ours(const iovec* list, size_t count) {
  if (!Door::is_any_taken() || is_inside() || list == nullptr || count > IOV_MAX) return false;
  return std::any_of(list, list + count,
                     [](const iovec& v) { return concerns(v.iov_base, v.iov_len); });
}

bool is_any_ours(const mmsghdr* list, unsigned count) {
  if (!needs_bounce() || !Door::is_any_taken() || is_inside() || list == nullptr) return false;
  if (concerns(list, count * sizeof *list)) return true;
  return std::any_of(list, list + count, [](const mmsghdr& m) {
    return is_any_ours(m.msg_hdr.msg_iov, m.msg_hdr.msg_iovlen);
  });
}

}  // namespace

OUTCORE_EXPORT int sendmmsg(int fd, mmsghdr* list, unsigned count, int flags) {
  count = std::min<unsigned>(count, IOV_MAX);  // the kernel's limit
  if (!is_any_ours(list, count)) {
    const auto let_leave = [&] {
      for (unsigned i = 0; list != nullptr && i < count; ++i)
        let_descriptors_leave(&list[i].msg_hdr);
    };
    if (!is_ready(let_leave)) return -1;
    return real().sendmmsg(fd, list, count, flags);
  }
  unsigned done = 0;
  for (; done < count; ++done) {
    const ssize_t sent = sendmsg(fd, &list[done].msg_hdr, flags);
    if (sent < 0) break;
    list[done].msg_len = static_cast<unsigned>(sent);
  }
  return done == 0 && count != 0 ? -1 : static_cast<int>(done);
}

// As in the kernel, the time limit is looked at only between messages.
OUTCORE_EXPORT int recvmmsg(int fd, mmsghdr* list, unsigned count, int flags, timespec* time) {
  if (!is_any_ours(list, count)) {
    const int got = real().recvmmsg(fd, list, count, flags, time);
    for (int i = 0; i < got; ++i) afterwards([&] { note_received(list[i].msg_hdr); });
    return got;
  }
  const auto now = [] { return static_cast<int64_t>(outcore::base::now_ns()); };
  const int64_t limit = time == nullptr ? 0 : now() + time->tv_sec * 1'000'000'000 + time->tv_nsec;
  int each = flags & ~MSG_WAITFORONE;
  unsigned done = 0;
  for (; done < count; ++done) {
    const ssize_t got = recvmsg(fd, &list[done].msg_hdr, each);
    if (got < 0) break;
    list[done].msg_len = static_cast<unsigned>(got);
    if ((flags & MSG_WAITFORONE) != 0) each |= MSG_DONTWAIT;
    if (time != nullptr && now() >= limit) {
      *time = {};
      ++done;
      break;
    }
  }
  return done == 0 && count != 0 ? -1 : static_cast<int>(done);
}

// The pipe keeps the pages that are written to it, so it gets other pages with the same bytes.
OUTCORE_EXPORT ssize_t vmsplice(int fd, const iovec* list, size_t count, unsigned flags) {
  if (!needs_bounce() || !is_any_ours(list, count)) return real().vmsplice(fd, list, count, flags);
  const int how = real().fcntl(fd, F_GETFL);
  const auto n = static_cast<int>(count);
  if (how >= 0 && (how & O_ACCMODE) == O_RDONLY) return readv(fd, list, n);
  Bounce buffer(total_of(list, n));
  if (!buffer.is_there()) return fail(ENOMEM);
  if (!gather(list, n, 0, buffer.data(), buffer.size())) return fail(EFAULT);
  buffer.lend();
  const iovec one{buffer.data(), buffer.size()};
  return real().vmsplice(fd, &one, 1, flags & ~static_cast<unsigned>(SPLICE_F_GIFT));
}

namespace {

// Copies between two lists of buffers of this process.
ssize_t copy_within(const iovec* to, int to_count, const iovec* from, int from_count) {
  const size_t total = std::min(total_of(to, to_count), total_of(from, from_count));
  Bounce buffer(std::max<size_t>(total, 1));
  if (!buffer.is_there()) return fail(ENOMEM);
  size_t done = 0;
  while (done < total) {
    const size_t n = std::min(buffer.size(), total - done);
    if (!gather(from, from_count, done, buffer.data(), n) ||
        !scatter(to, to_count, done, buffer.data(), n))
      return done != 0 ? static_cast<ssize_t>(done) : fail(EFAULT);
    done += n;
  }
  return static_cast<ssize_t>(done);
}

// Transfers in pieces through memory that is not managed. `call` transfers one piece, between a
// buffer here and a range of the other process.
template <typename Call>
ssize_t through(const iovec* near, int near_count, const iovec* far, unsigned long far_count,
                bool is_write, const Call& call) {
  const size_t total =
      std::min(total_of(near, near_count), total_of(far, static_cast<int>(far_count)));
  Bounce buffer(std::max<size_t>(total, 1));
  if (!buffer.is_there()) return fail(ENOMEM);
  size_t done = 0;
  for (unsigned long i = 0; i < far_count && done < total; ++i) {
    for (size_t at = 0; at < far[i].iov_len && done < total;) {
      const size_t n = std::min({buffer.size(), far[i].iov_len - at, total - done});
      const auto stop = [&] { return done != 0 ? static_cast<ssize_t>(done) : ssize_t{-1}; };
      if (is_write && !gather(near, near_count, done, buffer.data(), n))
        return errno = EFAULT, stop();
      const iovec here{buffer.data(), n}, there{static_cast<std::byte*>(far[i].iov_base) + at, n};
      const ssize_t moved = call(&here, &there);
      if (moved <= 0) return stop();
      OC_CHECK(static_cast<size_t>(moved) <= n);
      if (!is_write && !scatter(near, near_count, done, buffer.data(), static_cast<size_t>(moved)))
        return errno = EFAULT, stop();
      done += static_cast<size_t>(moved);
      at += static_cast<size_t>(moved);
      if (static_cast<size_t>(moved) < n) return static_cast<ssize_t>(done);
    }
  }
  return static_cast<ssize_t>(done);
}

bool is_any_a_peers(const iovec* list, unsigned long count) {
  return list != nullptr && std::any_of(list, list + count, [](const iovec& v) {
           return Window::may_be_a_peers(v.iov_base, v.iov_len);
         });
}

bool is_sane(unsigned long near_count, unsigned long far_count, unsigned long flags) {
  return flags == 0 && near_count <= IOV_MAX && far_count <= IOV_MAX;
}

}  // namespace

OUTCORE_EXPORT ssize_t process_vm_readv(pid_t pid, const iovec* near, unsigned long near_count,
                                        const iovec* far, unsigned long far_count,
                                        unsigned long flags) noexcept {
  const auto call = [&] {
    return real().process_vm_readv(pid, near, near_count, far, far_count, flags);
  };
  const bool is_own = pid == ::getpid();
  const auto n = static_cast<int>(near_count);
  if (!needs_bounce() || !is_sane(near_count, far_count, flags)) return call();
  if (is_own && (is_any_ours(near, near_count) || is_any_ours(far, far_count)))
    return copy_within(near, n, far, static_cast<int>(far_count));
  if (!is_any_ours(near, near_count)) return call();
  return through(near, n, far, far_count, false, [&](const iovec* here, const iovec* there) {
    return real().process_vm_readv(pid, here, 1, there, 1, 0);
  });
}

// The kernel pins pages of the other process, and writes to them although they may have been
// evicted there meanwhile. So the call is refused where the other process may have managed memory:
// under --alloc anywhere, otherwise in the window, which all processes of the run have at the same
// addresses.
OUTCORE_EXPORT ssize_t process_vm_writev(pid_t pid, const iovec* near, unsigned long near_count,
                                         const iovec* far, unsigned long far_count,
                                         unsigned long flags) noexcept {
  const auto call = [&] {
    return real().process_vm_writev(pid, near, near_count, far, far_count, flags);
  };
  const bool is_own = pid == ::getpid();
  const auto n = static_cast<int>(near_count);
  if (is_inside() || !is_sane(near_count, far_count, flags)) return call();
  if (!is_own && (are_later_writes_refused() || is_any_a_peers(far, far_count)))
    return fail(ENOSYS);
  if (is_own && (is_any_ours(near, near_count) || is_any_ours(far, far_count)))
    return copy_within(far, static_cast<int>(far_count), near, n);
  if (!needs_bounce() || !is_any_ours(near, near_count)) return call();
  return through(near, n, far, far_count, true, [&](const iovec* here, const iovec* there) {
    return real().process_vm_writev(pid, here, 1, there, 1, 0);
  });
}

OUTCORE_EXPORT ssize_t getrandom(void* p, size_t n, unsigned flags) {
  if (!needs_bounce() || !concerns(p, n)) return real().getrandom(p, n, flags);
  Bounce buffer(std::max<size_t>(n, 1));
  if (!buffer.is_there()) return fail(ENOMEM);
  const ssize_t got = real().getrandom(buffer.data(), std::min(n, buffer.size()), flags);
  const iovec one{p, n};
  if (got > 0 && !scatter(&one, 1, 0, buffer.data(), static_cast<size_t>(got))) return fail(EFAULT);
  return got;
}

OUTCORE_EXPORT int getentropy(void* p, size_t n) {
  if (!needs_bounce() || n > 256 || !concerns(p, n)) return real().getentropy(p, n);
  char bytes[256];
  if (real().getentropy(bytes, n) != 0) return -1;
  return outcore::os::copy_or_fail(p, bytes, n) ? 0 : fail(EFAULT);
}
