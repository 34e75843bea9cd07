// Asked: processes that do with a file what they are asked to, for used_otherwise.
#pragma once

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "program.h"

namespace asked {

using namespace program;

inline constexpr const char* kFile = "together";
inline constexpr const char* kOther = "another";
inline constexpr const char* kLeased = "leased";
inline constexpr int kFlags = O_RDWR | O_CLOEXEC;
inline uint64_t bytes = 0;

// -- what a process does when it is asked --

struct Question {
  char kind;
  uint64_t index, value;
};

struct Server {
  int fd = -1, leased = -1, socket = -1;
  uint64_t* words = nullptr;
  pthread_t opener{};

  uint64_t answer(const Question& q);
  uint64_t use_words(const Question& q);
  uint64_t pass_descriptor(const Question& q);
  uint64_t hold_lease(const Question& q);
};

inline off_t place(uint64_t index) { return static_cast<off_t>(index * 8); }

inline uint64_t error_of(long result) { return result < 0 ? static_cast<uint64_t>(errno) : 0; }

inline void* open_leased(void*) {
  const int fd = ::open(kLeased, O_RDONLY | O_CLOEXEC);
  require(fd >= 0 && ::close(fd) == 0, "the open that waits");
  return nullptr;
}

// While the lease is held, an open of that file does not return.
inline uint64_t Server::hold_lease(const Question& q) {
  switch (q.kind) {
    case 'L':
      ::signal(SIGIO, SIG_IGN);
      leased = ::open(kLeased, O_RDONLY | O_CLOEXEC);
      require(leased >= 0, "open");
      return error_of(::fcntl(leased, F_SETLEASE, F_WRLCK));
    case 'W':
      while (::fcntl(leased, F_GETLEASE) == F_WRLCK) ::sched_yield();
      return 0;
    case 'U':
      require(::fcntl(leased, F_SETLEASE, F_UNLCK) == 0, "the end of the lease");
      return 0;
    case 'o':
      require(::pthread_create(&opener, nullptr, open_leased, nullptr) == 0, "a thread");
      return 0;
    default:
      require(::pthread_join(opener, nullptr) == 0, "pthread_join");
      return 0;
  }
}

struct Message {
  msghdr header{};
  iovec part{};
  char byte = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  Message() {
    part = {&byte, 1};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

inline uint64_t Server::pass_descriptor(const Question& q) {
  if (q.kind == 'G') {
    const auto process =
        static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(q.index), 0));
    require(process >= 0, "pidfd_open");
    fd = static_cast<int>(::syscall(SYS_pidfd_getfd, process, static_cast<int>(q.value), 0));
    require(fd >= 0 && ::close(process) == 0, "pidfd_getfd");
    return 0;
  }
  Message message;
  if (q.kind == 'S') {
    cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(part), &fd, sizeof fd);
    require(::sendmsg(socket, &message.header, 0) == 1, "sendmsg");
    return 0;
  }
  require(::recvmsg(socket, &message.header, 0) == 1, "recvmsg");
  const cmsghdr* const part = CMSG_FIRSTHDR(&message.header);
  require(part != nullptr, "a descriptor");
  std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
  return 0;
}

inline uint64_t Server::use_words(const Question& q) {
  uint64_t word = q.value;
  switch (q.kind) {
    case 'r':
      return reinterpret_cast<volatile uint64_t*>(words)[q.index];
    case 's':
      words[q.index] = q.value;
      return 0;
    case 'p':
      require(::pread(fd, &word, 8, place(q.index)) == 8, "pread");
      return word;
    default:
      require(::pwrite(fd, &word, 8, place(q.index)) == 8, "pwrite");
      return 0;
  }
}

// Descriptors that it has closed have numbers that others may get, which those can close.
inline void check_numbers(int fd) {
  int many[400];
  for (int& number : many) require((number = ::fcntl(fd, F_DUPFD_CLOEXEC, 0)) >= 0, "F_DUPFD");
  for (const int number : many) require(::close(number) == 0, "close of a number");
}

inline uint64_t Server::answer(const Question& q) {
  switch (q.kind) {
    case 'O':
      fd = ::open(q.index == 0 ? kFile : kOther, static_cast<int>(q.value) | O_CLOEXEC, 0600);
      return error_of(fd);
    case 'M':
      words = map(fd, bytes, PROT_READ | PROT_WRITE);
      return 0;
    case 'C':
      return error_of(::close(fd));
    case '#':
      return static_cast<uint64_t>(fd);
    case 'N':
      check_numbers(fd);
      return 0;
    case 't':
      return error_of(::truncate(kFile, static_cast<off_t>(q.value)));
    case 'g':
      return error_of(::ftruncate(fd, static_cast<off_t>(q.value)));
    case 'x': {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{q.value, RLIM_INFINITY};
      return error_of(::setrlimit(RLIMIT_FSIZE, &limit));
    }
    case 'i': {  // a child maps what it has inherited, and uses its parent's mapping, too
      const pid_t child = ::fork();
      if (child == 0) {
        const uint64_t* const again = map(fd, bytes, PROT_READ | PROT_WRITE);
        require(again[q.index] == q.value, "what a child maps");
        require(words[q.index] == q.value, "what its parent had mapped");
        ::_exit(0);
      }
      return static_cast<uint64_t>(code_of(child));
    }
    case 'k': {  // a child makes it empty by its name, and as long as it was
      const pid_t child = ::fork();
      if (child == 0) {
        require(::truncate(kFile, 0) == 0, "truncate by a child");
        require(::truncate(kFile, static_cast<off_t>(bytes)) == 0, "truncate by a child again");
        require(words[q.index] == 0, "what a child finds");
        ::_exit(0);
      }
      return static_cast<uint64_t>(code_of(child));
    }
    case 'r':
    case 's':
    case 'p':
    case 'w':
      return use_words(q);
    case 'G':
    case 'S':
    case 'R':
      return pass_descriptor(q);
    default:
      return hold_lease(q);
  }
}

// -- one that is asked --

struct Other {
  int to = -1, from = -1;
  pid_t process = -1;

  explicit Other(int socket = -1) {
    int there[2], back[2];
    require(::pipe2(there, O_CLOEXEC) == 0 && ::pipe2(back, O_CLOEXEC) == 0, "pipe");
    process = ::fork();
    require(process >= 0, "fork");
    if (process == 0) {
      ::close(there[1]);
      Server server;
      server.socket = socket;
      for (Question q{}; ::read(there[0], &q, sizeof q) == sizeof q;) {
        const uint64_t word = server.answer(q);
        require(::write(back[1], &word, sizeof word) == sizeof word, "an answer");
      }
      ::_exit(0);
    }
    ::close(there[0]);
    ::close(back[1]);
    to = there[1];
    from = back[0];
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
  ~Other() {
    ::close(to);
    const int code = code_of(process);
    if (code != 0) fail("a process ended with %d", code);
    ::close(from);
  }

  uint64_t ask(char kind, uint64_t index = 0, uint64_t value = 0) const {
    const Question q{kind, index, value};
    uint64_t word = 0;
    require(::write(to, &q, sizeof q) == sizeof q, "a question");
    if (::read(from, &word, sizeof word) != sizeof word) fail("'%c' was not answered", kind);
    return word;
  }
  void expect(char kind, uint64_t index, uint64_t value, const char* what) const {
    const uint64_t seen = ask(kind, index);
    if (seen != value)
      fail("%s: '%c' of word %lu: %lu, and not %lu", what, kind, index, seen, value);
  }
  void begin(int flags = O_RDWR) const {
    require(ask('O', 0, static_cast<uint64_t>(flags)) == 0, "open");
    if (flags == O_RDWR) ask('M');
  }
  // It maps another file, as whoever uses large files does.
  void use_another() const {
    require(ask('O', 1, O_RDWR) == 0, "open of another");
    ask('M');
  }
};

}  // namespace asked
