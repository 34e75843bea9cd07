// send, recv and stdio's fread and fwrite: calls whose buffers may be ours. See calls.h.
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "core/base/assert.h"
#include "core/os/signal_delivery.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/leaving.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

// Only where system calls cannot wait for an absent page.
bool must_bounce(const void* p, size_t n) { return needs_bounce() && concerns(p, n); }

// The address of a message is no longer than this, or the kernel refuses it.
constexpr size_t kNameMax = sizeof(sockaddr_storage);

bool is_ours(const void* p, size_t n) { return p != nullptr && n != 0 && concerns(p, n); }

bool must_bounce_message(const msghdr* m) {
  if (!needs_bounce() || m == nullptr || m->msg_iovlen > IOV_MAX) return false;
  if (is_ours(m, sizeof *m) || is_ours(m->msg_name, m->msg_namelen) ||
      is_ours(m->msg_control, m->msg_controllen) ||
      is_ours(m->msg_iov, m->msg_iovlen * sizeof(iovec)))
    return true;
  for (size_t i = 0; i < m->msg_iovlen; ++i)
    if (concerns(m->msg_iov[i].iov_base, m->msg_iov[i].iov_len)) return true;
  return false;
}

// How the bytes of a call pass through memory that is not managed, if they are more than a Bounce
// has.
enum class Passage {
  kOnePiece,  // the rest is left
  kPieces,    // of a stream, until the call would end
  kWhole,     // a message, or as much as the kernel has of a stream
  kRefused,   // a message that is longer than any
};

int option_of(int fd, int name, int otherwise) {
  const int before = errno;
  socklen_t size = sizeof otherwise;
  ::getsockopt(fd, SOL_SOCKET, name, &otherwise, &size);
  errno = before;
  return otherwise;
}

// Each call is a message of its own.
bool keeps_messages(int fd) {
  return option_of(fd, SO_TYPE, SOCK_STREAM) != SOCK_STREAM ||
         option_of(fd, SO_PROTOCOL, 0) == IPPROTO_SCTP;
}

Passage passage_of_sent(int fd, size_t bytes, int flags) {
  if (bytes <= Bounce::kBytesMax) return Passage::kOnePiece;
  if (keeps_messages(fd)) {
    const int domain = option_of(fd, SO_DOMAIN, 0);
    const bool has_limit = domain == AF_UNIX || domain == AF_INET || domain == AF_INET6;
    const auto most = static_cast<size_t>(option_of(fd, SO_SNDBUF, INT_MAX));
    return has_limit && bytes > most ? Passage::kRefused : Passage::kWhole;
  }
  // The program counts the calls of which it gets word.
  return (flags & MSG_ZEROCOPY) != 0 ? Passage::kWhole : Passage::kPieces;
}

// What is received without waiting for all is no more than the kernel has in its buffers.
// Descriptors come with the bytes beside which they were sent: those are asked for with one call.
Passage passage_of_received(int fd, size_t bytes, const msghdr& m, int flags) {
  if (bytes <= Bounce::kBytesMax) return Passage::kOnePiece;
  if (keeps_messages(fd)) return Passage::kWhole;
  const bool is_dropped = (flags & MSG_TRUNC) != 0, waits = (flags & MSG_WAITALL) != 0;
  if (!waits || (flags & MSG_PEEK) != 0) return is_dropped ? Passage::kOnePiece : Passage::kWhole;
  return m.msg_control != nullptr && m.msg_controllen != 0 ? Passage::kWhole : Passage::kPieces;
}

// The pieces of one call on a stream after the first. An error or the end must stay in the socket
// for the program's next call, as the kernel leaves it if the call has moved something.
class LaterPieces {
 public:
  // Before the first piece.
  LaterPieces(int fd, int flags, bool is_sent) : fd_(fd), is_sent_(is_sent) {
    timeval limit{};
    socklen_t size = sizeof limit;
    const int before = errno;
    ::getsockopt(fd, SOL_SOCKET, is_sent ? SO_SNDTIMEO : SO_RCVTIMEO, &limit, &size);
    const int how = real().fcntl(fd, F_GETFL);
    errno = before;
    const bool never_waits = (flags & MSG_DONTWAIT) != 0 || (how >= 0 && (how & O_NONBLOCK) != 0);
    const int64_t limit_ns = limit.tv_sec * 1'000'000'000 + limit.tv_usec * 1'000;
    if (never_waits)
      end_ns_ = 0;
    else if (limit_ns != 0)
      end_ns_ = now_ns() + limit_ns;
  }
  // Waits until another piece can be begun. False: the call ends.
  bool can_begin() const {
    const int before = errno;
    pollfd one{fd_, static_cast<short>(is_sent_ ? POLLOUT : POLLIN | POLLRDHUP), 0};
    const int64_t left_ns = std::max<int64_t>(end_ns_ - now_ns(), 0);
    const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
    const int found = real().ppoll(&one, 1, end_ns_ == kNever ? nullptr : &left, nullptr);
    int queued = 1;
    const bool is_there = found > 0 && (one.revents & POLLNVAL) == 0;
    if (is_there && !is_sent_) real().ioctl(fd_, FIONREAD, &queued);
    errno = before;
    return is_there && (is_sent_ ? (one.revents & (POLLERR | POLLHUP)) == 0 : queued > 0);
  }

 private:
  static constexpr int64_t kNever = INT64_MAX;
  static int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }
  int fd_;
  bool is_sent_;
  int64_t end_ns_ = kNever;  // 0: it does not wait
};

// A copy of a message in memory that is not managed; its bytes are in one buffer.
class MessageCopy {
 public:
  MessageCopy(const msghdr& theirs, size_t bytes, Passage passage)
      : header(theirs),
        bytes_(bytes),
        passage_(passage),
        buffer_(std::max<size_t>(bytes, 1),
                passage == Passage::kWhole ? Bounce::Size::kWhole : Bounce::Size::kPiece) {}
  // 0 or an errno. REQUIRES: called once, first.
  int copy(const msghdr& theirs, bool is_sent) {
    OC_CHECK(list_ == nullptr);
    if (!buffer_.is_there()) return ENOMEM;
    list_ = theirs.msg_iov;
    count_ = static_cast<int>(theirs.msg_iovlen);
    header.msg_iov = &one_;
    header.msg_iovlen = 1;
    if (theirs.msg_name != nullptr) {
      header.msg_namelen = std::min<socklen_t>(theirs.msg_namelen, kNameMax);
      if (is_sent && !outcore::os::copy_or_fail(&name_, theirs.msg_name, header.msg_namelen))
        return EFAULT;
      header.msg_name = &name_;
    }
    if (is_ours(theirs.msg_control, theirs.msg_controllen)) {
      // Allocated, so that it is aligned; the kernel refuses to send a large one.
      control_.reset(static_cast<std::byte*>(std::calloc(1, theirs.msg_controllen)));
      if (control_ == nullptr) return ENOBUFS;
      if (is_sent &&
          !outcore::os::copy_or_fail(control_.get(), theirs.msg_control, theirs.msg_controllen))
        return EFAULT;
      header.msg_control = control_.get();
    }
    return 0;
  }

  bool is_last_piece() const { return done_ + one_.iov_len == bytes_; }
  // The next piece has the bytes behind those that are done; only the first has name and control.
  void begin_piece() {
    one_ = {buffer_.data(), std::min(buffer_.size(), bytes_ - done_)};
    if (done_ == 0) return;
    header.msg_name = header.msg_control = nullptr;
    header.msg_namelen = 0;
    header.msg_controllen = 0;
  }
  // Fills the piece with the program's bytes. False: they cannot be read.
  bool take() { return gather(list_, count_, done_, buffer_.data(), one_.iov_len); }
  // Copies what came of the piece to where the program wants it. False: it cannot be written there.
  bool give(size_t got) {
    return got == 0 || scatter(list_, count_, done_, buffer_.data(), std::min(got, one_.iov_len));
  }
  // Likewise the name, control and flags that came with the first piece.
  bool give_header(msghdr* theirs) {
    bool is_given = true;
    if (theirs->msg_name != nullptr) {
      is_given = outcore::os::copy_or_fail(theirs->msg_name, &name_,
                                           std::min(header.msg_namelen, theirs->msg_namelen));
      theirs->msg_namelen = header.msg_namelen;
    }
    if (control_ != nullptr)
      is_given =
          outcore::os::copy_or_fail(theirs->msg_control, control_.get(),
                                    std::min(header.msg_controllen, theirs->msg_controllen)) &&
          is_given;
    theirs->msg_controllen = header.msg_controllen;
    theirs->msg_flags = header.msg_flags;
    return is_given;
  }
  void moved(size_t bytes) { done_ += bytes; }
  bool is_piece_full(size_t moved) const { return moved == one_.iov_len; }
  bool has_more() const { return passage_ == Passage::kPieces && done_ < bytes_; }
  ssize_t done() const { return static_cast<ssize_t>(done_); }
  void lend() { buffer_.lend(); }

  msghdr header;

 private:
  size_t bytes_;
  Passage passage_;
  Bounce buffer_;
  const iovec* list_ = nullptr;  // the program's
  int count_ = 0;
  size_t done_ = 0;
  iovec one_{};
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  sockaddr_storage name_{};
  std::unique_ptr<std::byte, Free> control_;
};

size_t bytes_of(const msghdr& m) { return total_of(m.msg_iov, static_cast<int>(m.msg_iovlen)); }

}  // namespace

OUTCORE_EXPORT ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (!is_ready([message] { let_descriptors_leave(message); })) return -1;
  if (!must_bounce_message(message)) return real().sendmsg(fd, message, flags);
  const size_t bytes = bytes_of(*message);
  const Passage passage = passage_of_sent(fd, bytes, flags);
  if (passage == Passage::kRefused) return fail(EMSGSIZE);
  MessageCopy copy(*message, bytes, passage);
  if (const int error = copy.copy(*message, true); error != 0) return fail(error);
  if ((flags & MSG_ZEROCOPY) != 0) copy.lend();
  std::optional<LaterPieces> later;
  if (passage == Passage::kPieces) later.emplace(fd, flags, true);
  for (;;) {
    copy.begin_piece();
    if (!copy.take()) return copy.done() != 0 ? copy.done() : fail(EFAULT);
    int how = flags;
    if (!copy.is_last_piece()) how &= ~(MSG_EOR | MSG_OOB);
    if (copy.done() != 0) {
      if (!later->can_begin()) return copy.done();
      // A call that has sent something raises no SIGPIPE, and opens no connection again.
      how = (how | MSG_NOSIGNAL) & ~MSG_FASTOPEN;
    }
    const ssize_t sent = real().sendmsg(fd, &copy.header, how);
    if (sent < 0) return copy.done() != 0 ? copy.done() : sent;
    copy.moved(static_cast<size_t>(sent));
    if (!copy.is_piece_full(static_cast<size_t>(sent)) || !copy.has_more()) return copy.done();
  }
}

OUTCORE_EXPORT ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (!must_bounce_message(message)) {
    const ssize_t got = real().recvmsg(fd, message, flags);
    if (got >= 0) afterwards([message] { note_received(*message); });
    return got;
  }
  const size_t bytes = bytes_of(*message);
  const Passage passage = passage_of_received(fd, bytes, *message, flags);
  MessageCopy copy(*message, bytes, passage);
  if (const int error = copy.copy(*message, false); error != 0) return fail(error);
  // TCP drops the bytes then, and leaves those of the buffer.
  const bool may_be_left = (flags & MSG_TRUNC) != 0 && passage != Passage::kWhole;
  std::optional<LaterPieces> later;
  if (passage == Passage::kPieces) later.emplace(fd, flags, false);
  for (;;) {
    const bool is_first = copy.done() == 0;
    copy.begin_piece();
    const auto stop = [&copy](int error) { return copy.done() != 0 ? copy.done() : fail(error); };
    if (may_be_left && !copy.take()) return stop(EFAULT);
    if (!is_first && !later->can_begin()) return copy.done();
    const int how = is_first ? flags : (flags & ~MSG_WAITALL) | MSG_DONTWAIT;
    const ssize_t got = real().recvmsg(fd, &copy.header, how);
    if (got < 0 || (got == 0 && !is_first)) return is_first ? got : copy.done();
    if (is_first) {
      afterwards([&copy] { note_received(copy.header); });
      if (!copy.give_header(message)) return fail(EFAULT);
    }
    if (!copy.give(static_cast<size_t>(got))) return stop(EFAULT);
    copy.moved(static_cast<size_t>(got));
    if ((is_first && !copy.is_piece_full(static_cast<size_t>(got))) || !copy.has_more())
      return copy.done();
  }
}

OUTCORE_EXPORT ssize_t sendto(int fd, const void* p, size_t n, int flags, const sockaddr* address,
                              socklen_t size) {
  if (!must_bounce(p, n) && !must_bounce(address, size))
    return real().sendto(fd, p, n, flags, address, size);
  iovec one{const_cast<void*>(p), n};
  msghdr message{};
  if (address != nullptr && size > kNameMax) return fail(EINVAL);
  message.msg_name = const_cast<sockaddr*>(address);
  message.msg_namelen = size;
  message.msg_iov = &one;
  message.msg_iovlen = 1;
  return sendmsg(fd, &message, flags);
}

OUTCORE_EXPORT ssize_t send(int fd, const void* p, size_t n, int flags) {
  if (!must_bounce(p, n)) return real().send(fd, p, n, flags);
  return sendto(fd, p, n, flags, nullptr, 0);
}

OUTCORE_EXPORT ssize_t recvfrom(int fd, void* p, size_t n, int flags, sockaddr* address,
                                socklen_t* size) {
  if (!must_bounce(p, n)) return real().recvfrom(fd, p, n, flags, address, size);
  if (size != nullptr && static_cast<int>(*size) < 0) return fail(EINVAL);
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

// -- stdio, which passes the program's own buffer to the kernel if it is large --

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
