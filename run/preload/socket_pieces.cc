#include "run/preload/socket_pieces.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "core/base/clock.h"
#include "run/preload/bounce.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

// What is asked here is no part of the program's call, and leaves no error behind.
class ErrnoKept {
 public:
  ErrnoKept() = default;
  ~ErrnoKept() { errno = before_; }
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;

 private:
  const int before_ = errno;
};

int option_of(int fd, int name, int otherwise) {
  socklen_t size = sizeof otherwise;
  ::getsockopt(fd, SOL_SOCKET, name, &otherwise, &size);
  return otherwise;
}

bool is_without_waiting(int fd, int flags) {
  const int how = real().fcntl(fd, F_GETFL);
  return (flags & MSG_DONTWAIT) != 0 || (how >= 0 && (how & O_NONBLOCK) != 0);
}

// Each call is a message of its own.
bool keeps_messages(int fd) {
  return option_of(fd, SO_TYPE, SOCK_STREAM) != SOCK_STREAM ||
         option_of(fd, SO_PROTOCOL, 0) == IPPROTO_SCTP;
}

constexpr size_t kLentBytesMax = 16 << 20;   // a longer send of MSG_ZEROCOPY is short
constexpr size_t kOtherBytesMax = 64 << 20;  // longer than any message of the rarer families

}  // namespace

Passage passage_of_sent(int fd, size_t bytes, int flags) {
  if (bytes <= Bounce::kBytesMax) return Passage::kOnePiece;
  const ErrnoKept kept;
  if (keeps_messages(fd)) {
    const int domain = option_of(fd, SO_DOMAIN, 0);
    const bool has_limit = domain == AF_UNIX || domain == AF_INET || domain == AF_INET6;
    const auto most = static_cast<size_t>(option_of(fd, SO_SNDBUF, INT_MAX));
    return bytes > (has_limit ? most : kOtherBytesMax) ? Passage::kRefused : Passage::kWhole;
  }
  if ((flags & MSG_ZEROCOPY) == 0 || option_of(fd, SO_ZEROCOPY, 0) == 0) return Passage::kPieces;
  // The program counts the calls of which it gets word.
  return bytes <= kLentBytesMax && !is_without_waiting(fd, flags) ? Passage::kWhole
                                                                  : Passage::kOnePiece;
}

Receiving how_to_receive(int fd, size_t bytes, const msghdr& m, int flags) {
  if (bytes <= Bounce::kBytesMax) return {Passage::kOnePiece, bytes};
  const ErrnoKept kept;
  if (keeps_messages(fd)) return {Passage::kWhole, bytes};
  const bool peeks = (flags & MSG_PEEK) != 0;  // each piece would be the same
  if (peeks && (flags & MSG_TRUNC) != 0) return {Passage::kOnePiece, bytes};
  const bool waits = (flags & MSG_WAITALL) != 0 && !is_without_waiting(fd, flags);
  if (waits && (flags & MSG_TRUNC) != 0) return {Passage::kPieces, bytes};
  if (waits && (peeks || (m.msg_control != nullptr && m.msg_controllen != 0)))
    return {Passage::kWhole, bytes};
  if (waits) return {Passage::kPieces, bytes};
  const size_t queued = bytes_to_read(fd);
  if (queued <= Bounce::kBytesMax) return {Passage::kOnePiece, bytes};
  if ((flags & MSG_TRUNC) != 0) return {Passage::kPieces, bytes};
  return {Passage::kWhole, std::min(bytes, queued)};
}

LaterPieces::LaterPieces(int fd, int flags, bool is_sent) : fd_(fd), is_sent_(is_sent) {
  const ErrnoKept kept;
  timeval limit{};
  socklen_t size = sizeof limit;
  ::getsockopt(fd, SOL_SOCKET, is_sent ? SO_SNDTIMEO : SO_RCVTIMEO, &limit, &size);
  constexpr uint64_t kSecondsMax = 1'000'000'000;
  const auto seconds = std::min(static_cast<uint64_t>(limit.tv_sec), kSecondsMax);
  if (is_without_waiting(fd, flags) || (!is_sent && (flags & MSG_WAITALL) == 0))
    end_ns_ = 0;
  else if (seconds != 0 || limit.tv_usec != 0)
    end_ns_ =
        base::now_ns() + seconds * 1'000'000'000 + static_cast<uint64_t>(limit.tv_usec) * 1'000;
}

bool LaterPieces::can_begin() const {
  const ErrnoKept kept;
  const bool is_late = !never_waits() && base::now_ns() >= end_ns_;
  return !is_late && (is_sent_ ? can_send() : can_receive());
}

// Room is left to the call: poll() does not tell of all. POLLERR is also word of MSG_ZEROCOPY.
bool LaterPieces::can_send() const {
  pollfd one{fd_, POLLOUT, 0};
  const timespec none{};
  return real().ppoll(&one, 1, &none, nullptr) >= 0 && (one.revents & (POLLHUP | POLLNVAL)) == 0;
}

bool LaterPieces::can_receive() const {
  int is_at_mark = 0;  // of urgent bytes, before which a call ends
  if (real().ioctl(fd_, SIOCATMARK, &is_at_mark) == 0 && is_at_mark != 0) return false;
  if (bytes_to_read(fd_) > 0) return true;
  if (option_of(fd_, SO_RCVLOWAT, 1) > 1) return true;  // poll() waits for as much
  pollfd one{fd_, POLLIN | POLLRDHUP, 0};
  const uint64_t now = base::now_ns(), left_ns = end_ns_ > now ? end_ns_ - now : 0;
  const timespec left{static_cast<time_t>(left_ns / 1'000'000'000),
                      static_cast<long>(left_ns % 1'000'000'000)};
  if (real().ppoll(&one, 1, end_ns_ == kNever ? nullptr : &left, nullptr) <= 0) return false;
  return bytes_to_read(fd_) > 0 || (one.revents & (POLLRDHUP | POLLHUP | POLLNVAL)) == 0;
}

}  // namespace outcore::preload
