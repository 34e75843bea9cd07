// fork_late_child FOLDER : a forked child that gets no processor until its parent's fork() has
// returned has the bytes of its parent all the same. The parent runs under ptrace, which holds the
// child back.
#include <sys/ptrace.h>

#include <csignal>
#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 1 << 20, kWords = kBytes / 8;

// The parent: tells by a signal that its fork() has returned.
int be_parent() {
  auto* words = static_cast<uint64_t*>(std::malloc(kBytes));
  require(words != nullptr, "malloc");
  fill(words, kWords, 1);
  std::signal(SIGUSR1, [](int) {});
  const pid_t child = ::fork();
  if (child == 0) ::_exit(is_filled(words, kWords, 1) ? 0 : 1);
  ::raise(SIGUSR1);
  require(code_of(child) == 0, "the child ended well");
  require(is_filled(words, kWords, 1), "the parent's own bytes");
  std::puts("right");
  return 0;
}

void go_on(pid_t process, int signal) { ::ptrace(PTRACE_CONT, process, nullptr, signal); }

// Lets the parent go on at its fork, and the child only when that has returned.
int trace(pid_t parent) {
  int status = 0;
  require(::waitpid(parent, &status, 0) == parent && WIFSTOPPED(status), "the parent begins");
  ::ptrace(PTRACE_SETOPTIONS, parent, nullptr, PTRACE_O_TRACEFORK | PTRACE_O_EXITKILL);
  go_on(parent, 0);
  pid_t child = 0;
  bool has_returned = false;
  for (;;) {
    const pid_t who = ::waitpid(-1, &status, __WALL);
    require(who > 0, "waitpid of the traced");
    if (!WIFSTOPPED(status)) {
      if (who == parent) return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
      continue;
    }
    const int signal = WSTOPSIG(status);
    if (who != parent && signal == SIGSTOP) {
      child = who;
      if (has_returned) go_on(child, 0);  // else it is held back
    } else if (status >> 16 == PTRACE_EVENT_FORK || signal == SIGTRAP) {
      go_on(who, 0);
    } else {
      if (who == parent && signal == SIGUSR1) {
        has_returned = true;
        if (child != 0) go_on(child, 0);
      }
      go_on(who, signal);
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 2) return be_parent();
  begin(count, arguments);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::execl("/proc/self/exe", "fork_late_child", ".", "traced", nullptr);
    ::_exit(9);
  }
  require(trace(parent) == 0, "the parent ended well");
  return 0;
}
