#include "preload/release_link.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "os/wait.h"
#include "preload/own_descriptors.h"
#include "preload/real.h"

namespace outcore::preload {
namespace {

constexpr uint64_t kNsMax = 30'000'000'000;

std::atomic<int> answering{-1}, asking{-1};

// Forked children do not have the answering end: when the process is gone, whoever asks would wait
// for them, and they for themselves. Its asking end they keep.
void close_in_child() {
  asking.store(-1);
  if (const int fd = answering.exchange(-1); fd >= 0) {
    OwnDescriptors::forget(fd);
    real().close(fd);
  }
}

struct Control {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int))];
};

bool waits_until(int fd, int16_t events, uint64_t deadline_ns) {
  for (;;) {
    const uint64_t now = os::now_ns();
    if (now >= deadline_ns) return false;
    pollfd wanted{fd, events, 0};
    const int n = ::poll(&wanted, 1, static_cast<int>((deadline_ns - now) / 1'000'000) + 1);
    if (n > 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

// Sends the question, and with it the socket for the answer. 0 or an errno.
int send_question(int link, const ReleaseLink::Question& question, int reply, uint64_t deadline) {
  Control control{};
  iovec part{const_cast<ReleaseLink::Question*>(&question), sizeof question};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof reply);
  std::memcpy(CMSG_DATA(header), &reply, sizeof reply);
  for (;;) {
    if (real().sendmsg(link, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return 0;
    if (errno != EAGAIN && errno != EINTR) return errno;
    if (!waits_until(link, POLLOUT, deadline)) return ETIMEDOUT;
  }
}

}  // namespace

void ReleaseLink::prepare() { ::pthread_atfork(nullptr, nullptr, close_in_child); }

int ReleaseLink::start() {
  if (const int there = answering.load(); there >= 0) return there;
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -errno;
  for (int& end : ends) end = OwnDescriptors::keep(end);
  asking.store(ends[1]);
  answering.store(ends[0]);
  return ends[0];
}

int ReleaseLink::asking_end() { return asking.load(); }

void ReleaseLink::answer(int answering_end, Answer (*release)(const Question&)) {
  Question question{};
  Control control{};
  iovec part{&question, sizeof question};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t n = real().recvmsg(answering_end, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  const cmsghdr* header = n < 0 ? nullptr : CMSG_FIRSTHDR(&message);
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return;
  int reply = -1;
  std::memcpy(&reply, CMSG_DATA(header), sizeof reply);
  reply = OwnDescriptors::keep(reply);
  if (n == sizeof question) {
    const Answer answer = release(question);
    const ssize_t ignored = real().send(reply, &answer, sizeof answer, MSG_NOSIGNAL | MSG_DONTWAIT);
    static_cast<void>(ignored);
  }
  OwnDescriptors::forget(reply);
  real().close(reply);
}

ReleaseLink::Answer ReleaseLink::ask(int asking_end, const Question& question) {
  const uint64_t deadline = os::now_ns() + kNsMax;
  std::atomic<uint32_t> nothing{0};
  while (os::now_ns() < deadline) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return Answer::kLate;
    const int error = send_question(asking_end, question, ends[1], deadline);
    real().close(ends[1]);
    Answer answer = Answer::kLate;
    const bool has_answered = error == 0 && waits_until(ends[0], POLLIN, deadline) &&
                              real().recv(ends[0], &answer, sizeof answer, 0) == sizeof answer;
    real().close(ends[0]);
    if (has_answered) return answer;
    if (error == EPIPE || error == ECONNRESET) return Answer::kGone;
    if (error != 0) return Answer::kLate;
    // The question was dropped unread: the process is about to be gone.
    os::wait(&nothing, 0, 1'000'000);
  }
  return Answer::kLate;
}

}  // namespace outcore::preload
