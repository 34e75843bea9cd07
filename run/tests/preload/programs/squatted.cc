// squatted DIR [BYTES]: another process has the names by which this one could be found, and says
// "done" to whatever it is asked. A forked child sees what its parent wrote all the same, and the
// parent what the child wrote.
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <csignal>
#include <cstddef>

#include "program.h"

using namespace program;

namespace {

// The process that squats; it ends with its parent.
pid_t start_squatter(pid_t whose) {
  int ready[2];
  require(::pipe(ready) == 0, "pipe");
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child != 0) {
    char c = 0;
    ::close(ready[1]);
    require(::read(ready[0], &c, 1) == 1, "the squatter listens");
    ::close(ready[0]);
    return child;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const int n = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "outcore/%d",
                              static_cast<int>(whose));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  require(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  require(::listen(listener, 8) == 0, "listen");
  require(::write(ready[1], "x", 1) == 1, "write");
  for (;;) {
    const int peer = ::accept(listener, nullptr, nullptr);
    char question[200];
    if (::read(peer, question, sizeof question) > 0 && ::write(peer, "done\n", 5) != 5) return 1;
    ::close(peer);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  const pid_t squatter = start_squatter(::getpid());
  const int number = make_file("squatted", bytes, 1);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  fill(words, bytes / 8, 2);
  const pid_t child = ::fork();
  if (child == 0) {
    if (!is_filled(words, bytes / 8, 2)) ::_exit(1);
    fill(words, bytes / 16, 3);
    ::_exit(0);
  }
  require(code_of(child) == 0, "the child sees what its parent wrote");
  require(is_filled(words, bytes / 16, 3), "the parent sees what its child wrote");
  std::printf("as if nobody had the names\n");
  ::kill(squatter, SIGKILL);
  return 0;
}
