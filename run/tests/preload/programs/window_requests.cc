// window_requests DIR [CASE]: calls that only ask, with a mapping's address beside what they are
// given, change nothing of how it is mapped; lists of asynchronous calls into a mapping are told of
// when all of them have ended; a name that is none is refused as it is without a mapping.
#include <aio.h>
#include <dirent.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "window_cases.h"

using namespace program;

namespace {

Mapped file;
int ends[2];

void begin_case() {
  file = map_new_file();
  require(::pipe(ends) == 0, "pipe");
}

// -- requests that do not name the mapping --

// Whether the kernel maps the file itself there, as without anybody between.
bool is_kernels(const Mapped& p) {
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  require(maps != nullptr, "fopen of /proc/self/maps");
  char line[1024];
  bool is_found = false, is_file = false;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    char* rest = nullptr;
    const unsigned long first = std::strtoul(line, &rest, 16);
    const unsigned long end = std::strtoul(rest + 1, nullptr, 16);
    const auto at = reinterpret_cast<unsigned long>(p.m);
    if (at < first || at >= end) continue;
    is_found = true;
    is_file = std::strstr(line, "/mapped") != nullptr;
  }
  std::fclose(maps);
  require(is_found, "the mapping is in /proc/self/maps");
  return is_file;
}

// What is asked for, and right behind it the mapping's address, as on many a stack.
template <typename T>
struct alignas(64) Asked {
  T value{};
  alignas(alignof(void*)) void* next = nullptr;
  void* more[4] = {};
};

template <typename T, typename F>
void ask(const char* what, F f) {
  const bool was_kernels = is_kernels(file);
  Asked<T> asked;
  asked.next = file.at(kC);
  for (void*& each : asked.more) each = file.at(kD);
  f(&asked.value);
  if (asked.next != file.at(kC)) fail("%s changes what lies behind its answer", what);
  if (is_kernels(file) != was_kernels) fail("%s changes how the file is mapped", what);
}

// On what it is not for some are refused; that asks as well.
void ask_descriptors() {
  begin_case();
  require(::write(ends[1], "abc", 3) == 3, "write");
  ask<int>("FIONREAD",
           [](int* n) { require(::ioctl(ends[0], FIONREAD, n) == 0 && *n == 3, "FIONREAD"); });
  ask<winsize>("TIOCGWINSZ", [](winsize* size) {
    require(::ioctl(ends[0], TIOCGWINSZ, size) == -1 && errno == ENOTTY, "TIOCGWINSZ");
  });
  const int none = ::open("/dev/null", O_RDWR);
  require(none >= 0, "open of /dev/null");
  ask<winsize>("TIOCGWINSZ of a device", [none](winsize* size) {
    require(::ioctl(none, TIOCGWINSZ, size) == -1 && errno == ENOTTY, "TIOCGWINSZ of a device");
  });
  int on = 1;
  ask<int>("FIONBIO", [&on](int* n) {
    *n = on;
    require(::ioctl(ends[0], FIONBIO, n) == 0, "FIONBIO");
  });
  require_works(file);
}

// Its number tells eight bytes; the kernel writes four.
void ask_flags() {
  begin_case();
  const int other = ::open("other", O_RDWR | O_CREAT, 0600);
  require(other >= 0 && ::unlink("other") == 0, "open");
  for (const int number : {other, file.number, ends[0]})
    ask<long>("FS_IOC_GETFLAGS", [number](long* flags) {
      if (::ioctl(number, FS_IOC_GETFLAGS, flags) != 0)
        require(errno == ENOTTY || errno == EOPNOTSUPP, "FS_IOC_GETFLAGS");  // not every disk's
    });
  require_works(file);
}

// Whether a program could restrict itself, as libraries of sandboxes find out.
void ask_about_seccomp() {
  begin_case();
  ask<unsigned>("SECCOMP_GET_ACTION_AVAIL", [](unsigned* action) {
    *action = SECCOMP_RET_LOG;
    require(::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, action) == 0,
            "SECCOMP_GET_ACTION_AVAIL");
  });
  ask<int>("PR_SET_SECCOMP of nothing", [](int*) {
    require(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) == -1 && errno == EFAULT,
            "PR_SET_SECCOMP of nothing");
  });
  ask<int>("SECCOMP_SET_MODE_FILTER of nothing", [](int*) {
    require(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, nullptr) == -1 && errno == EFAULT,
            "SECCOMP_SET_MODE_FILTER of nothing");
  });
  require_works(file);
}

// -- lists of asynchronous calls --

volatile sig_atomic_t told, told_early;
aiocb reading, writing;
const char kText[] = "hello";

aiocb call_of(int number, int code, volatile void* buffer) {
  aiocb call{};
  call.aio_fildes = number;
  call.aio_lio_opcode = code;
  call.aio_buf = buffer;
  call.aio_nbytes = 5;
  call.aio_sigevent.sigev_notify = SIGEV_NONE;
  return call;
}

void begin_list(uint64_t to) {
  static char bytes[sizeof kText];
  std::memcpy(bytes, kText, sizeof kText);
  reading = call_of(ends[0], LIO_READ, file.at(to));
  writing = call_of(ends[1], LIO_WRITE, bytes);
  file.evict();
}

void require_read(uint64_t to) {
  require(::aio_error(&reading) == 0 && ::aio_return(&reading) == 5, "five bytes are read");
  file.evict();
  require(std::memcmp(file.at(to), kText, 5) == 0, "and lie in the mapping");
}

void note_told(int) {
  if (::aio_error(&reading) == EINPROGRESS) told_early = 1;
  told = told + 1;
}

// What has the list's bytes to come waits for them by now.
void wait_until_all_asleep() {
  DIR* const threads = ::opendir("/proc/self/task");
  require(threads != nullptr, "opendir");
  while (const dirent* const each = ::readdir(threads)) {
    const std::atomic<pid_t> thread{static_cast<pid_t>(std::strtoull(each->d_name, nullptr, 10))};
    if (thread != 0 && thread != thread_id()) wait_until_asleep(thread);
  }
  ::closedir(threads);
}

// The read ends when the bytes are written, and the list with it.
void tell_of_list(bool is_handed_back) {
  begin_case();
  if (is_handed_back) hand_back(file);
  struct sigaction action {};
  action.sa_handler = note_told;
  action.sa_flags = SA_RESTART;
  require(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  for (int times = 1; times <= 3; ++times) {
    begin_list(kA);
    aiocb* const list[] = {&reading};
    require(::lio_listio(LIO_NOWAIT, list, 1, &event) == 0, "lio_listio");
    wait_until_all_asleep();
    require(told == times - 1, "nobody is told before the bytes are there");
    require(::aio_error(&reading) == EINPROGRESS, "the read goes on");
    require(::write(ends[1], kText, 5) == 5, "write");
    while (told < times) ::sched_yield();
    require(told == times && told_early == 0, "the list is told of once, and when it has ended");
    require_read(kA);
  }
  require_works(file);
}

// One of the list's calls waits for what another one writes.
void wait_for_list(bool is_handed_back) {
  begin_case();
  if (is_handed_back) hand_back(file);
  for (const bool is_read_first : {true, false}) {
    begin_list(kB);
    aiocb* const list[] = {is_read_first ? &reading : &writing, nullptr,
                           is_read_first ? &writing : &reading};
    require(::lio_listio(LIO_WAIT, list, 3, nullptr) == 0, "lio_listio that waits");
    require(::aio_error(&writing) == 0 && ::aio_return(&writing) == 5, "five bytes are written");
    require_read(kB);
    std::memset(file.at(kB), 0, 5);
  }
  require_works(file);
}

// -- names --

// Of a socket; what a message that goes there has lies in the mapping.
void require_refused(void* name, socklen_t bytes, int error, const char* what) {
  const int from = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  require(from >= 0, "socket");
  iovec part{file.at(kA), 5};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_name = name;
  message.msg_namelen = bytes;
  file.evict();
  errno = 0;
  require(::sendmsg(from, &message, 0) == -1 && errno == error, what);
  ::close(from);
}

void refuse_names() {
  begin_case();
  struct {
    sockaddr_un address{AF_UNIX, "to"};
    char more[200] = {};
  } name;
  const int to = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  require(::bind(to, reinterpret_cast<sockaddr*>(&name.address), sizeof name.address) == 0, "bind");
  require_refused(&name, sizeof name, EINVAL, "a name that is longer than any is refused");
  volatile uintptr_t nowhere = 16;
  require_refused(reinterpret_cast<void*>(nowhere), 16, EFAULT,
                  "a name that is nowhere is refused");
  std::memcpy(file.at(kC), &name, sizeof name);
  require_refused(file.at(kC), sizeof name, EINVAL, "as is a long one that lies in the mapping");
  char byte;
  require(::recv(to, &byte, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN, "nothing was sent");
  ::unlink("to");
  require_works(file);
}

const Case kCases[] = {
    {"descriptors", ask_descriptors},
    {"flags", ask_flags},
    {"seccomp", ask_about_seccomp},
    {"list", [] { tell_of_list(false); }},
    {"list-handed-back", [] { tell_of_list(true); }},
    {"list-that-waits", [] { wait_for_list(false); }},
    {"list-that-waits-handed-back", [] { wait_for_list(true); }},
    {"names", refuse_names},
};

}  // namespace

int main(int count, char** arguments) { return run_cases(count, arguments, kCases); }
