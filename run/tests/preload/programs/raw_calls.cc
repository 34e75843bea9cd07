// raw_calls DIR [BYTES]: system calls by an instruction of the program's own, by syscall() and by
// the C library's functions, with their arguments in absent pages of a mapping; each answers, and
// leaves the same bytes, as on plain memory. Signals interrupt and restart them; the program's own
// handler of SIGSYS gets what is sent to it.
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <time.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

using Call = long (*)(long number, long a, long b, long c, long d, long e, long f);

long call_by_libc(long number, long a, long b, long c, long d, long e, long f) {
  const long result = ::syscall(number, a, b, c, d, e, f);
  return result == -1 ? -errno : result;
}

constexpr size_t kRoomBytes = 8 * kPageBytes;

// What the cases use; the same for each way to call.
int ends[2], sockets[2], number = -1;

struct Place {
  Call call;
  unsigned char* m;
  unsigned char* at(size_t offset) const { return m + offset; }
  long word(size_t offset) const { return reinterpret_cast<long>(m + offset); }
  long say(size_t offset, const char* text) const {
    std::memcpy(m + offset, text, std::strlen(text) + 1);
    return word(offset);
  }
  template <typename T>
  T& as(size_t offset) const {
    return *reinterpret_cast<T*>(m + offset);
  }
  long run(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) const {
    evict();
    return call(n, a, b, c, d, e, f);
  }
  void evict() const {
    const auto page = reinterpret_cast<uintptr_t>(m) / kPageBytes * kPageBytes;
    if (is_mapped) ::madvise(reinterpret_cast<void*>(page), kRoomBytes + kPageBytes, MADV_DONTNEED);
  }
  bool is_mapped;
};

// Arguments begin just before the end of a page, so that most lie in two.
constexpr size_t kA = kPageBytes - 4, kB = 2 * kPageBytes - 12, kC = 3 * kPageBytes - 6,
                 kD = 5 * kPageBytes - 2;

struct Case {
  const char* name;
  long (*run)(const Place& p);
  bool is_same_each_time = true;  // what it writes
};

const Case kCases[] = {
    {"uname", [](const Place& p) { return p.run(SYS_uname, p.word(kA)); }},
    {"access", [](const Place& p) { return p.run(SYS_access, p.say(kA, "raw_calls"), R_OK); }},
    {"access of none", [](const Place& p) { return p.run(SYS_access, p.say(kA, "none"), R_OK); }},
    {"stat", [](const Place& p) { return p.run(SYS_stat, p.say(kA, "/dev/null"), p.word(kB)); }},
    {"newfstatat",
     [](const Place& p) {
       return p.run(SYS_newfstatat, AT_FDCWD, p.say(kA, "/dev/zero"), p.word(kC), 0);
     }},
    {"statx",
     [](const Place& p) {
       return p.run(SYS_statx, AT_FDCWD, p.say(kA, "/dev/zero"), 0, 1, p.word(kC));
     }},
    {"getcwd", [](const Place& p) { return p.run(SYS_getcwd, p.word(kA), 4096); }},
    {"mkdir", [](const Place& p) { return p.run(SYS_mkdir, p.say(kA, "made"), 0700); }},
    {"rename",
     [](const Place& p) {
       p.say(kB, "moved");
       return p.run(SYS_rename, p.say(kA, "made"), p.word(kB));
     }},
    {"symlink",
     [](const Place& p) {
       p.say(kB, "link");
       return p.run(SYS_symlink, p.say(kA, "moved"), p.word(kB));
     }},
    {"readlink",
     [](const Place& p) { return p.run(SYS_readlink, p.say(kA, "link"), p.word(kC), 100); }},
    {"unlink", [](const Place& p) { return p.run(SYS_unlink, p.say(kA, "link")); }},
    {"rmdir", [](const Place& p) { return p.run(SYS_rmdir, p.say(kA, "moved")); }},
    {"pwrite",
     [](const Place& p) {
       p.say(kA, "some bytes");
       return p.run(SYS_pwrite64, number, p.word(kA), 10, 100);
     }},
    {"pread", [](const Place& p) { return p.run(SYS_pread64, number, p.word(kB), 9000, 0); }},
    {"writev",
     [](const Place& p) {
       auto* list = &p.as<iovec>(kA);
       list[0] = {const_cast<char*>("ab"), 2};
       list[1] = {const_cast<char*>("cde"), 3};
       const long result = p.run(SYS_writev, ends[1], p.word(kA), 2);
       std::memset(list, 0, 2 * sizeof *list);
       return result;
     }},
    {"read", [](const Place& p) { return p.run(SYS_read, ends[0], p.word(kA), 5); }},
    {"poll of none",
     [](const Place& p) {
       p.as<pollfd>(kA) = {ends[0], POLLIN, 9};
       return p.run(SYS_poll, p.word(kA), 1, 0);
     }},
    {"ppoll",
     [](const Place& p) {
       p.as<pollfd>(kA) = {ends[1], POLLOUT, 0};
       p.as<timespec>(kB) = {1, 0};
       return p.run(SYS_ppoll, p.word(kA), 1, p.word(kB), 0, 8);
     },
     false},
    {"select",
     [](const Place& p) {
       FD_ZERO(&p.as<fd_set>(kA));
       FD_SET(ends[1], &p.as<fd_set>(kA));
       return p.run(SYS_select, ends[1] + 1, 0, p.word(kA), 0, 0);
     }},
    {"pselect6",
     [](const Place& p) {
       p.as<timespec>(kB) = {0, 1000};
       FD_ZERO(&p.as<fd_set>(kA));
       FD_SET(ends[0], &p.as<fd_set>(kA));
       return p.run(SYS_pselect6, ends[0] + 1, p.word(kA), 0, 0, p.word(kB), 0);
     }},
    {"sendto",
     [](const Place& p) {
       p.say(kA, "a message");
       return p.run(SYS_sendto, sockets[0], p.word(kA), 9, 0, 0, 0);
     }},
    {"recvfrom",
     [](const Place& p) { return p.run(SYS_recvfrom, sockets[1], p.word(kC), 100, 0, 0, 0); }},
    {"sendmsg",
     [](const Place& p) {
       p.as<iovec>(kA) = {p.at(kC), 7};
       p.say(kC, "message");
       p.as<msghdr>(kB) = {};
       p.as<msghdr>(kB).msg_iov = &p.as<iovec>(kA);
       p.as<msghdr>(kB).msg_iovlen = 1;
       const long result = p.run(SYS_sendmsg, sockets[0], p.word(kB), 0);
       std::memset(p.at(kA), 0, 200 + sizeof(msghdr) + kPageBytes);
       return result;
     }},
    {"recvmsg",
     [](const Place& p) {
       iovec one{p.at(kD), 100};
       p.as<msghdr>(kB) = {};
       p.as<msghdr>(kB).msg_iov = &one;
       p.as<msghdr>(kB).msg_iovlen = 1;
       const long result = p.run(SYS_recvmsg, sockets[1], p.word(kB), 0);
       std::memset(p.at(kB), 0, sizeof(msghdr));
       return result;
     }},
    {"getsockopt",
     [](const Place& p) {
       p.as<socklen_t>(kB) = 4;
       return p.run(SYS_getsockopt, sockets[0], SOL_SOCKET, SO_TYPE, p.word(kA), p.word(kB));
     }},
    {"setsockopt",
     [](const Place& p) {
       p.as<int>(kA) = 1;
       return p.run(SYS_setsockopt, sockets[0], SOL_SOCKET, SO_PASSCRED, p.word(kA), 4);
     }},
    {"getsockname",
     [](const Place& p) {
       p.as<socklen_t>(kB) = 64;
       return p.run(SYS_getsockname, sockets[0], p.word(kA), p.word(kB));
     }},
    {"fsetxattr",
     [](const Place& p) {
       p.say(kA, "user.raw_calls");
       p.say(kB, "value");
       return p.run(SYS_fsetxattr, number, p.word(kA), p.word(kB), 5, 0);
     }},
    {"fgetxattr",
     [](const Place& p) {
       p.say(kA, "user.raw_calls");
       return p.run(SYS_fgetxattr, number, p.word(kA), p.word(kC), 50);
     }},
    {"nanosleep",
     [](const Place& p) {
       p.as<timespec>(kA) = {0, 1000};
       return p.run(SYS_nanosleep, p.word(kA), p.word(kB));
     }},
    {"nanosleep of nonsense",
     [](const Place& p) {
       p.as<timespec>(kA) = {0, 2'000'000'000};
       return p.run(SYS_nanosleep, p.word(kA), p.word(kB));
     }},
    {"clock_gettime",
     [](const Place& p) { return p.run(SYS_clock_gettime, CLOCK_REALTIME, p.word(kA)); }, false},
    {"getrusage", [](const Place& p) { return p.run(SYS_getrusage, 0, p.word(kA)); }, false},
    {"prlimit64",
     [](const Place& p) { return p.run(SYS_prlimit64, 0, RLIMIT_CORE, 0, p.word(kA)); }},
    {"getgroups", [](const Place& p) { return p.run(SYS_getgroups, 0, p.word(kA)); }},
    {"sched_getaffinity",
     [](const Place& p) { return p.run(SYS_sched_getaffinity, 0, 128, p.word(kA)); }},
    {"rt_sigpending", [](const Place& p) { return p.run(SYS_rt_sigpending, p.word(kA), 8); }},
    {"rt_sigprocmask",
     [](const Place& p) {
       p.as<uint64_t>(kA) = 1UL << (SIGUSR2 - 1);
       const long first = p.run(SYS_rt_sigprocmask, SIG_BLOCK, p.word(kA), 0, 8);
       const long second = p.run(SYS_rt_sigprocmask, SIG_UNBLOCK, p.word(kA), p.word(kB), 8);
       return first * 1000 + second;
     }},
    {"getrandom", [](const Place& p) { return p.run(SYS_getrandom, p.word(kA), 300, 0); }, false},
    {"futex that differs",
     [](const Place& p) { return p.run(SYS_futex, p.word(kPageBytes), FUTEX_WAIT, 5); }},
    {"futex with a limit",
     [](const Place& p) {
       p.as<timespec>(kA) = {0, 1'000'000};
       return p.run(SYS_futex, p.word(kPageBytes), FUTEX_WAIT, 0, p.word(kA));
     }},
    {"futex that nobody waits for",
     [](const Place& p) { return p.run(SYS_futex, p.word(kPageBytes), FUTEX_WAKE, 1); }},
    {"a number that no call has", [](const Place& p) { return p.run(500, p.word(kA)); }},
    {"an address that nothing has",
     [](const Place& p) { return p.run(SYS_uname, p.is_mapped ? 4096 : 4096); }},
};

// Calls whose arguments cannot be told: the file goes back to the kernel.
const Case kLast[] = {
    {"ioctl", [](const Place& p) { return p.run(SYS_ioctl, ends[0], FIONREAD, p.word(kA)); }},
    {"uname again", [](const Place& p) { return p.run(SYS_uname, p.word(kA)); }},
};

struct Answer {
  long result = 0;
  unsigned char bytes[kRoomBytes];
};

// Where addresses are told in what is written, they are the case's own to remove.
void run_case(const Case& c, const Place& p, Answer* answer) {
  std::memset(p.m, 0, kRoomBytes);
  answer->result = c.run(p);
  p.evict();
  std::memcpy(answer->bytes, p.m, kRoomBytes);
}

unsigned char plain_memory[kRoomBytes + kPageBytes];
Answer wanted, found;

template <size_t count>
void compare(const Case (&cases)[count], const char* way, Call call, unsigned char* mapped) {
  for (const Case& c : cases) {
    // A case may leave what the next one needs: each is done on both kinds before that.
    run_case(c, {call, plain_memory + 4, false}, &wanted);
    const bool makes = std::strcmp(c.name, "mkdir") == 0,
               moves = std::strcmp(c.name, "rename") == 0;
    const bool links = std::strcmp(c.name, "symlink") == 0;
    if (makes) ::rmdir("made");
    if (moves) ::rename("moved", "made");
    if (links) ::unlink("link");
    if (std::strcmp(c.name, "unlink") == 0) require(::symlink("moved", "link") == 0, "symlink");
    if (std::strcmp(c.name, "rmdir") == 0) require(::mkdir("moved", 0700) == 0, "mkdir");
    if (std::strcmp(c.name, "read") == 0) require(::write(ends[1], "abcde", 5) == 5, "write");
    if (std::strcmp(c.name, "writev") == 0) {
      char drained[5];
      require(::read(ends[0], drained, 5) == 5, "read");
    }
    if (std::strcmp(c.name, "recvfrom") == 0) ::send(sockets[0], "a message", 9, 0);
    if (std::strcmp(c.name, "recvmsg") == 0) ::send(sockets[0], "message", 7, 0);
    if (std::strcmp(c.name, "sendto") == 0 || std::strcmp(c.name, "sendmsg") == 0) {
      char drained[100];
      require(::recv(sockets[1], drained, sizeof drained, 0) > 0, "recv");
    }
    run_case(c, {call, mapped, true}, &found);
    const bool is_as_wanted =
        found.result == wanted.result &&
        (!c.is_same_each_time || std::memcmp(found.bytes, wanted.bytes, kRoomBytes) == 0);
    if (!is_as_wanted)
      fail("%s, %s: %ld on the mapping, %ld on plain memory%s", c.name, way, found.result,
           wanted.result, found.result == wanted.result ? ", and other bytes" : "");
  }
  std::printf("%s: all agree\n", way);
}

// -- signals --

std::atomic<int> handled{0}, told{0};
std::atomic<bool> is_over{false};

// Until the call is over: the thread may not be waiting yet when it gets the first.
void* send_signals(void* thread) {
  while (!is_over.load()) {
    ::pthread_kill(*static_cast<pthread_t*>(thread), SIGUSR1);
    ::sched_yield();
  }
  return nullptr;
}

void* write_after_signals(void* thread) {
  while (handled.load() < 100) {
    ::pthread_kill(*static_cast<pthread_t*>(thread), SIGUSR1);
    ::sched_yield();
  }
  require(::write(ends[1], "w", 1) == 1, "write");
  return nullptr;
}

void interrupt(const Place& p) {
  struct sigaction action {};
  action.sa_handler = [](int) { handled.fetch_add(1); };
  pthread_t self = ::pthread_self(), other;
  require(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  require(::pthread_create(&other, nullptr, send_signals, &self) == 0, "pthread_create");
  p.as<timespec>(kA) = {100, 0};
  const long slept = p.run(SYS_nanosleep, p.word(kA), p.word(kB));
  is_over = true;
  ::pthread_join(other, nullptr);
  require(handled.load() > 0, "a signal was handled");
  require(slept == -EINTR, "it interrupts the call");
  action.sa_flags = SA_RESTART;
  handled = 0;
  require(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  require(::pthread_create(&other, nullptr, write_after_signals, &self) == 0, "pthread_create");
  require(p.run(SYS_read, ends[0], p.word(kA), 1) == 1, "SA_RESTART: the call goes on");
  ::pthread_join(other, nullptr);
  require(*p.at(kA) == 'w', "and reads what comes");
  std::printf("signals interrupt and restart\n");
}

void handle_own() {
  struct sigaction action {
  }, before{};
  action.sa_sigaction = [](int, siginfo_t* info, void*) {
    if (info->si_code <= 0) told.fetch_add(1);
  };
  action.sa_flags = SA_SIGINFO;
  require(::sigaction(SIGSYS, nullptr, &before) == 0 && before.sa_handler == SIG_DFL,
          "SIGSYS is at its default");
  require(::sigaction(SIGSYS, &action, nullptr) == 0, "sigaction");
  sigset_t all;
  sigfillset(&all);
  require(::pthread_sigmask(SIG_UNBLOCK, &all, nullptr) == 0, "pthread_sigmask");
  ::raise(SIGSYS);
  require(told.load() == 1, "a SIGSYS that is sent comes to the program's handler");
  require(::sigaction(SIGSYS, nullptr, &before) == 0 && before.sa_sigaction == action.sa_sigaction,
          "which sigaction tells");
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments, 4 << 20);
  const int data = make_file("raw_calls", bytes, 1);
  number = ::open("other", O_RDWR | O_CREAT | O_TRUNC, 0600);
  require(number >= 0 && ::ftruncate(number, 10000) == 0, "open");
  require(::pipe(ends) == 0, "pipe");
  require(::socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0, "socketpair");
  auto* const words = map(data, bytes, PROT_READ | PROT_WRITE);
  unsigned char* const mapped = reinterpret_cast<unsigned char*>(words) + 64 * kPageBytes + 4;
  compare(kCases, "by instruction", call_raw, mapped);
  compare(kCases, "by syscall()", call_by_libc, mapped);
  const Place p{call_raw, mapped, true};
  interrupt(p);
  handle_own();
  compare(kCases, "with a handler of SIGSYS", call_raw, mapped);
  compare(kLast, "what cannot be told", call_raw, mapped);
  for (uint64_t i = 0; i < 64 * kPageBytes / 8; ++i)
    require(words[i] == word_at(1, i), "what no call names stays");
  return 0;
}
