// send, recv and stdio's fread and fwrite: calls whose buffers may be ours. See calls.h.
#include <sys/socket.h>

#include <algorithm>

#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/leaving.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// Only where system calls cannot fault by themselves.
bool must_bounce(const void* p, size_t n) { return needs_bounce() && concerns(p, n); }

bool must_bounce_message(const msghdr* m) {
  if (!needs_bounce() || m == nullptr) return false;
  for (size_t i = 0; i < m->msg_iovlen; ++i)
    if (concerns(m->msg_iov[i].iov_base, m->msg_iov[i].iov_len)) return true;
  return false;
}

}  // namespace

OUTCORE_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (!is_ready([message] { let_descriptors_leave(message); })) return -1;
  if (!must_bounce_message(message)) return real().sendmsg(fd, message, flags);
  const auto count = static_cast<int>(message->msg_iovlen);
  // A longer one is sent in part, as a stream's may be; a datagram is never so long.
  Bounce buffer(std::max<size_t>(total_of(message->msg_iov, count), 1));
  if (!buffer.is_there()) return fail(ENOMEM);
  const size_t n = std::min(buffer.size(), total_of(message->msg_iov, count));
  if (!gather(message->msg_iov, count, 0, buffer.data(), n)) return fail(EFAULT);
  if ((flags & MSG_ZEROCOPY) != 0) buffer.lend();
  iovec one{buffer.data(), n};
  msghdr copy = *message;
  copy.msg_iov = &one;
  copy.msg_iovlen = 1;
  return real().sendmsg(fd, &copy, flags);
}

OUTCORE_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (!must_bounce_message(message)) return real().recvmsg(fd, message, flags);
  const auto count = static_cast<int>(message->msg_iovlen);
  Bounce buffer(std::max<size_t>(total_of(message->msg_iov, count), 1));
  if (!buffer.is_there()) return fail(ENOMEM);
  iovec one{buffer.data(), std::min(buffer.size(), total_of(message->msg_iov, count))};
  iovec* const list = message->msg_iov;
  message->msg_iov = &one;
  message->msg_iovlen = 1;
  const ssize_t got = real().recvmsg(fd, message, flags);
  message->msg_iov = list;
  message->msg_iovlen = static_cast<size_t>(count);
  if (got > 0 &&
      !scatter(list, count, 0, buffer.data(), std::min(static_cast<size_t>(got), one.iov_len)))
    return fail(EFAULT);
  return got;
}

OUTCORE_EXPORT ssize_t sendto(int fd, const void* p, size_t n, int flags, const sockaddr* address,
                              socklen_t size) {
  if (!must_bounce(p, n)) return real().sendto(fd, p, n, flags, address, size);
  iovec one{const_cast<void*>(p), n};
  msghdr message{};
  message.msg_name = const_cast<sockaddr*>(address);
  message.msg_namelen = size;
  message.msg_iov = &one;
  message.msg_iovlen = 1;
  ssize_t done = 0;
  // A blocking stream sends all of it.
  do {
    const ssize_t sent = sendmsg(fd, &message, flags);
    if (sent < 0) return done != 0 ? done : sent;
    done += sent;
    one = {static_cast<std::byte*>(const_cast<void*>(p)) + done, n - static_cast<size_t>(done)};
    if (sent == 0) break;
  } while (static_cast<size_t>(done) < n && (flags & MSG_DONTWAIT) == 0);
  return done;
}

OUTCORE_EXPORT ssize_t send(int fd, const void* p, size_t n, int flags) {
  if (!must_bounce(p, n)) return real().send(fd, p, n, flags);
  return sendto(fd, p, n, flags, nullptr, 0);
}

OUTCORE_EXPORT ssize_t recvfrom(int fd, void* p, size_t n, int flags, sockaddr* address,
                                socklen_t* size) {
  if (!must_bounce(p, n)) return real().recvfrom(fd, p, n, flags, address, size);
  iovec one{p, n};
  msghdr message{};
  message.msg_name = address;
  message.msg_namelen = size == nullptr ? 0 : *size;
  message.msg_iov = &one;
  message.msg_iovlen = 1;
  const ssize_t got = recvmsg(fd, &message, flags);
  if (got >= 0 && size != nullptr) *size = message.msg_namelen;
  return got;
}

OUTCORE_EXPORT ssize_t recv(int fd, void* p, size_t n, int flags) {
  if (!must_bounce(p, n)) return real().recv(fd, p, n, flags);
  return recvfrom(fd, p, n, flags, nullptr, nullptr);
}
OUTCORE_EXPORT ssize_t __recv_chk(int fd, void* p, size_t n, size_t, int flags) {
  return recv(fd, p, n, flags);
}
OUTCORE_EXPORT ssize_t __recvfrom_chk(int fd, void* p, size_t n, size_t, int flags,
                                      sockaddr* address, socklen_t* size) {
  return recvfrom(fd, p, n, flags, address, size);
}

// -- stdio, which hands large buffers to the kernel as they are --

namespace {

template <typename Call>
size_t through(void* p, size_t size, size_t count, bool is_write, const Call& call) {
  if (size == 0 || count == 0) return 0;
  const size_t total = size * count;
  Bounce buffer(total);
  if (!buffer.is_there()) return call(p, size, count);
  size_t done = 0;
  while (done < total) {
    const size_t n = std::min(buffer.size(), total - done);
    const iovec one{static_cast<std::byte*>(p) + done, n};
    if (is_write && !gather(&one, 1, 0, buffer.data(), n)) break;
    const size_t moved = call(buffer.data(), 1, n);
    if (!is_write && !scatter(&one, 1, 0, buffer.data(), moved)) break;
    done += moved;
    if (moved < n) break;
  }
  return done / size;
}

}  // namespace

OUTCORE_EXPORT size_t fwrite(const void* p, size_t size, size_t count, FILE* file) {
  if (!must_bounce(p, size * count)) return real().fwrite(p, size, count, file);
  return through(const_cast<void*>(p), size, count, true,
                 [&](const void* q, size_t s, size_t n) { return real().fwrite(q, s, n, file); });
}

OUTCORE_EXPORT size_t fread(void* p, size_t size, size_t count, FILE* file) {
  if (!must_bounce(p, size * count)) return real().fread(p, size, count, file);
  return through(p, size, count, false,
                 [&](void* q, size_t s, size_t n) { return real().fread(q, s, n, file); });
}
OUTCORE_EXPORT size_t __fread_chk(void* p, size_t, size_t size, size_t count, FILE* file) {
  return fread(p, size, count, file);
}

OUTCORE_EXPORT size_t fwrite_unlocked(const void* p, size_t size, size_t count, FILE* file) {
  if (!must_bounce(p, size * count)) return real().fwrite_unlocked(p, size, count, file);
  return through(const_cast<void*>(p), size, count, true, [&](const void* q, size_t s, size_t n) {
    return real().fwrite_unlocked(q, s, n, file);
  });
}

OUTCORE_EXPORT size_t fread_unlocked(void* p, size_t size, size_t count, FILE* file) {
  if (!must_bounce(p, size * count)) return real().fread_unlocked(p, size, count, file);
  return through(p, size, count, false,
                 [&](void* q, size_t s, size_t n) { return real().fread_unlocked(q, s, n, file); });
}
