// pid_namespace DIR: two programs in PID namespaces of their own whose network is the same, as in
// the containers of a pod: each has the PID 1, and a file mapped. A forked child of each finds the
// bytes that its parent wrote, and its parent finds the child's, while the other program is there.
#include <sched.h>

#include "program.h"

using namespace program;

namespace {

constexpr int kReadyFd = 8, kGoFd = 9;

// The first process of a namespace: it says that it has written, and goes on when it is told.
int be_pod(const char* name, uint64_t bytes) {
  require(::getpid() == 1, "the first process of its namespace");
  ::close(make_file(name, bytes, 1));
  const int number = ::open(name, O_RDWR);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  const uint64_t half = bytes / 16;
  fill(words, 2 * half, 2);
  char byte = 0;
  require(::write(kReadyFd, "r", 1) == 1 && ::read(kGoFd, &byte, 1) == 1, "the others");
  const pid_t child = ::fork();
  if (child == 0) {
    require(is_filled(words, 2 * half, 2), "the child reads what its parent wrote");
    fill(words + half, half, 3);
    ::_exit(0);
  }
  require(code_of(child) == 0, "the child");
  require(is_filled(words, half, 2), "the parent has what it wrote");
  require(is_filled(words + half, half, 3), "the parent reads what its child wrote");
  return 0;
}

// A process becomes the parent of a namespace, and ends as the first process in there does.
pid_t start_pod(const char* name, const char* size, int ready, int go) {
  const pid_t outside = ::fork();
  if (outside != 0) return outside;
  if (::unshare(CLONE_NEWPID) != 0) ::_exit(77);
  const pid_t inside = ::fork();
  if (inside != 0) ::_exit(code_of(inside));
  require(::dup2(ready, kReadyFd) == kReadyFd && ::dup2(go, kGoFd) == kGoFd, "dup2");
  ::execl("/proc/self/exe", "pid_namespace", ".", size, name, nullptr);
  ::_exit(99);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  if (count > 3) return be_pod(arguments[3], bytes);
  char size[32];
  std::snprintf(size, sizeof size, "%lu", bytes);
  int ready[2], go[2];
  require(::pipe2(ready, O_CLOEXEC) == 0 && ::pipe2(go, O_CLOEXEC) == 0, "pipe");
  const pid_t pods[] = {start_pod("one", size, ready[1], go[0]),
                        start_pod("two", size, ready[1], go[0])};
  ::close(ready[1]);
  char byte = 0;
  for (int i = 0; i < 2; ++i)
    if (::read(ready[0], &byte, 1) != 1) break;  // there can be no namespaces
  require(::write(go[1], "gg", 2) == 2, "write");
  for (const pid_t pod : pods) {
    const int code = code_of(pod);
    if (code == 77)
      std::printf("no PID namespace can be made here\n");
    else if (code != 0)
      fail("it ended with %d", code);
    else
      std::printf("right in its namespace\n");
  }
  return 0;
}
