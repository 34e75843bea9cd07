// listener: a file is handed back as another process opens it, and has a lease again, as the
// program has mapped it once more, before the listener is told that it was handed back. That must
// not be taken for news of the second lease: when that is broken, it is heard of.
#include "run/preload/listener.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "run/preload/inside.h"

// In the library it also says that what the thread calls is not the program's.
void outcore::preload::become_ours(const char*) {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

using outcore::preload::Identity;
using outcore::preload::Listener;

namespace {

void require(bool is_so, const char* what) {
  if (is_so) return;
  ::fprintf(stderr, "FAILED: %s\n", what);
  ::_exit(1);
}

// Another process opens the file to write it: true if it would have to wait for the lease.
bool open_elsewhere(const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK);
    ::_exit(fd >= 0 ? 0 : errno == EWOULDBLOCK ? 1 : 2);
  }
  int status = 0;
  require(::waitpid(child, &status, 0) == child && WIFEXITED(status), "the other process ends");
  require(WEXITSTATUS(status) < 2, "it finds the file, or a lease");
  return WEXITSTATUS(status) == 1;
}

}  // namespace

int main() {
  const char* const parent = ::getenv("TMPDIR");
  std::string path = std::string(parent != nullptr ? parent : "/var/tmp") + "/outcore-lease-XXXXXX";
  const int made = ::mkstemp(path.data());
  require(made >= 0, "a file is made");
  ::close(made);
  const int fd = ::open(path.c_str(), O_RDONLY);
  struct stat about;
  require(fd >= 0 && ::fstat(fd, &about) == 0, "it is opened to read");
  const Identity identity{about.st_dev, about.st_ino};
  const int event = ::eventfd(0, EFD_CLOEXEC);
  require(event >= 0, "there is an event");
  Listener listener(event);
  if (const int error = listener.lease(identity, fd); error != 0) {
    ::unlink(path.c_str());
    ::printf("no leases here: error %d\n", -error);
    return 77;
  }
  require(open_elsewhere(path), "an opener waits for the first lease");
  const auto first = listener.drain_events();
  require(first.size() == 1 && first[0].identity == identity, "the first lease is broken");
  require(listener.drain_events().empty(), "once");
  listener.end(identity, fd);  // handed back
  require(!open_elsewhere(path), "and nobody has to wait");
  require(listener.lease(identity, fd) == 0, "it is mapped, and leased, again");
  listener.settle(first[0].number);  // late
  require(listener.drain_events().empty(), "nothing is heard of the second lease");
  require(open_elsewhere(path), "an opener waits for the second lease");
  const auto second = listener.drain_events();
  require(second.size() == 1 && second[0].number != first[0].number, "the second lease is broken");
  listener.settle(second[0].number);  // it could not be handed back
  require(listener.drain_events().empty(), "which is heard of once");
  listener.end(identity, fd);
  ::unlink(path.c_str());
  return 0;
}
