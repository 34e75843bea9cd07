// own_threads: threads of the library are started all the time, by several threads; meanwhile the
// process forbids all its threads what the C library asks of the kernel for a new one. None of them
// is in between: it would end the process. In many processes, one by one.
#include "run/preload/own_threads.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <iterator>

using outcore::preload::OwnThreads;

namespace {

constexpr int kProcesses = 40, kStarters = 3;
constexpr int kForbidden[] = {SYS_rseq, SYS_clone, SYS_clone3};

std::atomic<int> starters{0}, begun{0};
std::atomic<bool> is_restricted{false};

void require(bool is_so, const char* what) {
  if (is_so) return;
  ::fprintf(stderr, "FAILED: %s\n", what);
  ::_exit(1);
}

void* begin(void*) {
  begun.fetch_add(1);
  return nullptr;
}

// Until it may start no more.
void* keep_starting(void*) {
  starters.fetch_add(1);
  for (;;) {
    pthread_t thread;
    const int error = OwnThreads::start(&thread, nullptr, begin, nullptr);
    if (error != 0) {
      require(is_restricted, "a thread starts as long as it may");
      return nullptr;
    }
    ::pthread_join(thread, nullptr);
  }
}

void restrict_oneself() {
  sock_filter text[2 * std::size(kForbidden) + 2];
  unsigned short length = 0;
  text[length++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (const int number : kForbidden) {
    text[length++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1);
    text[length++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  text[length++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const sock_fprog whole{length, text};
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
  const OwnThreads::NoneStarting none;
  is_restricted = true;
  require(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &whole) == 0,
          "the filter is installed");
}

void run() {
  pthread_t own[kStarters];
  for (pthread_t& starter : own)
    require(::pthread_create(&starter, nullptr, keep_starting, nullptr) == 0, "pthread_create");
  while (starters.load() < kStarters || begun.load() < 20) {
  }
  restrict_oneself();
  for (pthread_t starter : own) ::pthread_join(starter, nullptr);
  OwnThreads::let_rest();
}

}  // namespace

int main() {
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      run();
      ::_exit(0);
    }
    require(child > 0, "fork");
    int status = 0;
    require(::waitpid(child, &status, 0) == child, "waitpid");
    if (status != 0) ::fprintf(stderr, "process %d ended with %#x\n", i, status);
    require(status == 0, "a process ends well");
  }
  ::puts("none was starting");
  return 0;
}
