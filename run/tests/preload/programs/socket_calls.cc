// socket_calls DIR: calls on sockets and pipes whose bytes are in large allocations, and more than
// pass through other memory at a time. The same with Outcore and without it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr size_t kLongBytes = 3 << 20, kLongWords = kLongBytes / 8;

// What this machine or user may not: told the same with Outcore and without it.
void tell_left_out(const char* what) { std::printf("no %s: %s\n", what, std::strerror(errno)); }

// A listening socket of this machine.
struct Listener {
  int number = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  socklen_t size = sizeof address;
  sockaddr* where() { return reinterpret_cast<sockaddr*>(&address); }

  Listener() {
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(::bind(number, where(), size) == 0 && ::listen(number, 1) == 0 &&
                ::getsockname(number, where(), &size) == 0,
            "listen");
  }
  int connected() {
    const int end = ::socket(AF_INET, SOCK_STREAM, 0);
    require(::connect(end, where(), size) == 0, "connect");
    return end;
  }
  // The other end, which may send without a copy.
  int accepted() const {
    const int end = ::accept(number, nullptr, nullptr), one = 1;
    require(::setsockopt(end, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0, "SO_ZEROCOPY");
    return end;
  }
};

uint64_t memory_of_its_own[kLongWords];  // not Outcore's

// In a child: all bytes of a stream, which must be these.
[[noreturn]] void receive_in_child(int number, size_t bytes, uint64_t seed) {
  auto* const got = reinterpret_cast<char*>(memory_of_its_own);
  for (size_t n = 0; n < bytes;) {
    const ssize_t part = ::recv(number, got + n, bytes - n, 0);
    require(part > 0, "recv");
    n += static_cast<size_t>(part);
  }
  ::_exit(is_filled(memory_of_its_own, bytes / 8, seed) ? 0 : 1);
}

void sent_without_a_copy() {
  Listener listener;
  uint64_t* from = allocate(kBytes, 12);
  const pid_t child = ::fork();
  if (child == 0) receive_in_child(listener.connected(), kBytes, 12);
  const int number = listener.accepted();
  for (size_t n = 0; n < kBytes;) {
    const ssize_t part =
        ::send(number, reinterpret_cast<char*>(from) + n, kBytes - n, MSG_ZEROCOPY);
    require(part > 0, "send");
    n += static_cast<size_t>(part);
  }
  std::printf("MSG_ZEROCOPY: the child says %d\n", code_of(child));
  ::close(number);
  ::close(listener.number);
}

// A blocking stream sends all that it is asked to send, and waits for all if it is told to.
void long_streams() {
  constexpr auto kAll = static_cast<ssize_t>(kLongBytes);
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  uint64_t* words = allocate(kLongBytes, 14);
  pid_t child = ::fork();
  if (child == 0) receive_in_child(ends[1], kLongBytes, 14);
  iovec list[2] = {{words, 4096 + 8}, {words + 513, kLongBytes - 4096 - 8}};
  msghdr message{};
  message.msg_iov = list;
  message.msg_iovlen = 2;
  require(::sendmsg(ends[0], &message, 0) == kAll, "sendmsg sends all");
  std::printf("sendmsg: the child says %d\n", code_of(child));

  fill(memory_of_its_own, kLongWords, 15);
  child = ::fork();
  if (child == 0)
    ::_exit(::send(ends[1], memory_of_its_own, kLongBytes, 0) == kAll &&
                    ::send(ends[1], memory_of_its_own, kLongBytes, 0) == kAll
                ? 0
                : 1);
  require(::recvmsg(ends[0], &message, MSG_WAITALL) == kAll, "recvmsg waits for all");
  require(is_filled(words, kLongWords, 15), "it has all");
  fill(words, kLongWords, 16);
  require(::recv(ends[0], words, kLongBytes, MSG_WAITALL) == kAll, "recv waits for all");
  require(is_filled(words, kLongWords, 15), "it has all");
  std::printf("recv: the child says %d\n", code_of(child));
  ::close(ends[1]);
  require(::recv(ends[0], words, kLongBytes, MSG_WAITALL) == 0, "the end");
  require(::send(ends[0], words, kLongBytes, MSG_NOSIGNAL) == -1 && errno == EPIPE, "no reader");
  ::close(ends[0]);
}

// A send that fits is done, though poll() would not say so, and whoever reads comes later.
void sent_before_it_is_read() {
  int ends[2];
  const int room = 2 << 20;
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  if (::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0)
    return tell_left_out("room for a send");
  constexpr size_t kFits = kBytes + kBytes / 3;
  uint64_t* words = allocate(kLongBytes, 22);
  require(::send(ends[0], words, kFits, 0) == static_cast<ssize_t>(kFits), "it fits");
  fill(words, kLongWords, 0);
  require(::recv(ends[1], words, kFits, MSG_WAITALL) == static_cast<ssize_t>(kFits), "and comes");
  require(is_filled(words, kFits / 8, 22), "as it was");
  ::close(ends[0]);
  ::close(ends[1]);
}

// What waits in the error queue of a socket is no error of it.
void sent_beside_word_of_others() {
  Listener listener;
  uint64_t* words = allocate(kLongBytes, 23);
  const pid_t child = ::fork();
  if (child == 0) receive_in_child(listener.connected(), kLongBytes, 23);
  const int number = listener.accepted();
  require(::send(number, words, 4096, MSG_ZEROCOPY) == 4096, "send");
  pollfd word{number, 0, 0};
  require(::poll(&word, 1, 60'000) == 1 && (word.revents & POLLERR) != 0, "word of it");
  require(
      ::send(number, words + 512, kLongBytes - 4096, 0) == static_cast<ssize_t>(kLongBytes - 4096),
      "all is sent beside it");
  std::printf("beside word: the child says %d\n", code_of(child));
  ::close(number);
  ::close(listener.number);
}

// TCP's MSG_TRUNC drops bytes and leaves those of the buffer.
void dropped_bytes() {
  Listener listener;
  const pid_t child = ::fork();
  if (child == 0) {
    const int number = listener.connected();
    ::_exit(::send(number, memory_of_its_own, kLongBytes, 0) > 0 ? 0 : 1);
  }
  const int number = ::accept(listener.number, nullptr, nullptr);
  uint64_t* words = allocate(kLongBytes, 17);
  require(::recv(number, words, kLongBytes, MSG_TRUNC | MSG_WAITALL) ==
              static_cast<ssize_t>(kLongBytes),
          "all bytes are dropped");
  require(is_filled(words, kLongWords, 17), "the buffer stays");
  std::printf("MSG_TRUNC: the child says %d\n", code_of(child));
  ::close(number);
  ::close(listener.number);
}

// An error that comes after some bytes were moved is the next call's.
void reset_in_a_stream() {
  Listener listener;
  const linger none{1, 0};  // close() resets
  for (const bool is_sent : {false, true}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int number = listener.connected();
      ::setsockopt(number, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      const ssize_t moved = is_sent ? ::recv(number, memory_of_its_own, kBytes, MSG_WAITALL)
                                    : ::send(number, memory_of_its_own, kBytes, 0);
      for (int left = 1; !is_sent && left != 0;)  // all has arrived
        if (::ioctl(number, TIOCOUTQ, &left) != 0) ::_exit(2);
      ::close(number);
      ::_exit(moved == static_cast<ssize_t>(kBytes) ? 0 : 1);
    }
    const int number = ::accept(listener.number, nullptr, nullptr);
    const int room = 4 << 20;
    ::setsockopt(number, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    uint64_t* words = allocate(kLongBytes, 19);
    if (is_sent) {
      ssize_t n = 0;
      while ((n = ::send(number, words, kLongBytes, MSG_NOSIGNAL)) > 0) continue;
      // EPIPE if it comes just as another piece begins, which the kernel's one call does not have.
      require(errno == ECONNRESET || errno == EPIPE, "the reset is told");
    } else {
      require(::recv(number, words, kLongBytes, MSG_WAITALL) == static_cast<ssize_t>(kBytes),
              "what came before the reset");
      require(::recv(number, words, kLongBytes, 0) == -1 && errno == ECONNRESET, "the reset");
    }
    std::printf("reset: the child says %d\n", code_of(child));
    ::close(number);
  }
  ::close(listener.number);
}

// Who is told only of what arrives later takes a short read for all.
void all_at_once() {
  int ends[2];
  const int room = 4 << 20;
  require(::pipe2(ends, O_NONBLOCK) == 0, "pipe");
  if (::fcntl(ends[0], F_SETPIPE_SZ, room) < 0) return tell_left_out("large pipe");
  uint64_t* words = allocate(kLongBytes, 20);
  require(::write(ends[1], words, kLongBytes) == static_cast<ssize_t>(kLongBytes), "write");
  fill(words, kLongWords, 0);
  require(::read(ends[0], words, kLongBytes) == static_cast<ssize_t>(kLongBytes), "all of it");
  require(is_filled(words, kLongWords, 20), "what was written");
  ::close(ends[0]);
  ::close(ends[1]);
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "socketpair");
  if (::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0)
    return tell_left_out("room for a send");
  const ssize_t sent = ::write(ends[0], words, kLongBytes);
  require(sent > static_cast<ssize_t>(kBytes), "more than passes at once");
  fill(words, kLongWords, 0);
  const iovec list[2] = {{words, 4096}, {words + 512, kLongBytes - 4096}};
  require(::readv(ends[1], list, 2) == sent, "all that was there");
  require(is_filled(words, static_cast<uint64_t>(sent) / 8, 20), "what was sent");
  ::close(ends[0]);
  ::close(ends[1]);
}

// A write of which some bytes were taken raises no signal.
void closed_in_a_write() {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  uint64_t* words = allocate(kLongBytes, 21);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    ::_exit(::recv(ends[1], memory_of_its_own, kBytes, MSG_WAITALL) == static_cast<ssize_t>(kBytes)
                ? 0
                : 1);
  }
  ::close(ends[1]);
  const ssize_t sent = ::write(ends[0], words, kLongBytes);
  require(sent >= static_cast<ssize_t>(kBytes) && sent <= static_cast<ssize_t>(kLongBytes), "some");
  std::printf("closed: the child says %d\n", code_of(child));
  const int udp = ::socket(AF_INET, SOCK_DGRAM, 0);
  require(::send(udp, words, kLongBytes, 0) == -1, "longer than any");
  std::printf("UDP: %s\n", std::strerror(errno));
  ::close(udp);
  ::close(ends[0]);
}

// Larger than the buffer through which they pass.
void long_datagrams() {
  int ends[2];
  require(::socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) == 0, "socketpair");
  constexpr size_t kMessageBytes = kLongBytes / 2;
  constexpr auto kAll = static_cast<ssize_t>(kMessageBytes);
  const int room = 2 * kLongBytes;
  if (::setsockopt(ends[0], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0)
    return tell_left_out("long datagrams");  // they need CAP_NET_ADMIN
  uint64_t* words = allocate(kLongBytes, 18);
  uint64_t* into = allocate(kLongBytes, 0);
  require(::send(ends[0], words, kMessageBytes, 0) == kAll, "send");
  require(::recv(ends[1], into, kLongBytes, 0) == kAll, "one message");
  require(is_filled(into, kMessageBytes / 8, 18), "all of it");
  require(::recv(ends[1], into, kLongBytes, MSG_DONTWAIT) == -1 && errno == EAGAIN, "no other");
  fill(into, kLongWords, 0);
  require(::write(ends[0], words, kMessageBytes) == kAll, "write");
  require(::read(ends[1], into, kLongBytes) == kAll, "one message");
  require(is_filled(into, kMessageBytes / 8, 18), "all of it");
  require(::recv(ends[1], into, kLongBytes, MSG_DONTWAIT) == -1 && errno == EAGAIN, "no other");
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace

int main(int count, char** arguments) {
  begin(count, arguments);
  sent_without_a_copy();
  long_streams();
  sent_before_it_is_read();
  sent_beside_word_of_others();
  dropped_bytes();
  reset_in_a_stream();
  all_at_once();
  closed_in_a_write();
  long_datagrams();
  return 0;
}
