#include "run/preload/socket_pieces.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "run/preload/bounce.h"
#include "run/preload/real.h"

namespace outcore::preload {
namespace {

int option_of(int fd, int name, int otherwise) {
  const int before = errno;
  socklen_t size = sizeof otherwise;
  ::getsockopt(fd, SOL_SOCKET, name, &otherwise, &size);
  errno = before;
  return otherwise;
}

bool is_without_waiting(int fd, int flags) {
  const int before = errno;
  const int how = real().fcntl(fd, F_GETFL);
  errno = before;
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

int64_t LaterPieces::now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

LaterPieces::LaterPieces(int fd, int flags, bool is_sent) : fd_(fd), is_sent_(is_sent) {
  timeval limit{};
  socklen_t size = sizeof limit;
  const int before = errno;
  ::getsockopt(fd, SOL_SOCKET, is_sent ? SO_SNDTIMEO : SO_RCVTIMEO, &limit, &size);
  errno = before;
  constexpr int64_t kSecondsMax = 1'000'000'000;
  const int64_t seconds = std::clamp<int64_t>(limit.tv_sec, 0, kSecondsMax);
  if (is_without_waiting(fd, flags) || (!is_sent && (flags & MSG_WAITALL) == 0))
    end_ns_ = 0;
  else if (seconds != 0 || limit.tv_usec != 0)
    end_ns_ = now_ns() + seconds * 1'000'000'000 + limit.tv_usec * 1'000;
}

bool LaterPieces::can_begin() const {
  const int before = errno;
  const bool may =
      (is_sent_ || never_waits() || now_ns() < end_ns_) && (is_sent_ ? can_send() : can_receive());
  errno = before;
  return may;
}

// Room is left to the call: poll() does not tell of all. POLLERR is also word of MSG_ZEROCOPY.
bool LaterPieces::can_send() const {
  if (end_ns_ != 0 && now_ns() >= end_ns_) return false;
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
  const int64_t left_ns = std::max<int64_t>(end_ns_ - now_ns(), 0);
  const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  if (real().ppoll(&one, 1, end_ns_ == kNever ? nullptr : &left, nullptr) <= 0) return false;
  return bytes_to_read(fd_) > 0 || (one.revents & (POLLRDHUP | POLLHUP | POLLNVAL)) == 0;
}

}  // namespace outcore::preload
