// send, recv and stdio's fread and fwrite: calls whose buffers may be ours. See calls.h.
#include <sys/socket.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "core/base/assert.h"
#include "core/os/signal_delivery.h"
#include "run/preload/bounce.h"
#include "run/preload/calls.h"
#include "run/preload/leaving.h"
#include "run/preload/socket_pieces.h"

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

// A copy of a message in memory that is not managed; its bytes are in one buffer.
class MessageCopy {
 public:
  // `room_bytes`: no more than these pass at once.
  MessageCopy(const msghdr& theirs, size_t bytes, Passage passage, size_t room_bytes)
      : header(theirs),
        bytes_(bytes),
        passage_(passage),
        buffer_(std::max<size_t>(room_bytes, 1),
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
  MessageCopy copy(*message, bytes, passage, bytes);
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
  const auto [passage, room_bytes] = how_to_receive(fd, bytes, *message, flags);
  MessageCopy copy(*message, bytes, passage, room_bytes);
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
    const int how = !is_first && later->never_waits() ? flags | MSG_DONTWAIT : flags;
    const ssize_t got = real().recvmsg(fd, &copy.header, how);
    if (got < 0 || (got == 0 && !is_first)) return is_first ? got : copy.done();
    if (is_first) {
      afterwards([&copy] { note_received(copy.header); });
      if (!copy.give_header(message)) return fail(EFAULT);
    }
    if (!copy.give(static_cast<size_t>(got))) return stop(EFAULT);
    copy.moved(static_cast<size_t>(got));
    if (!copy.is_piece_full(static_cast<size_t>(got)) || !copy.has_more()) return copy.done();
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
