// daemon DIR ANSWER [BYTES]: a process maps a file, becomes a daemon as daemons do (fork, setsid,
// fork, every descriptor closed), goes on with what it mapped and maps anew. It writes its answer
// to a file; the process that was started waits for it and prints that.
#include <sys/prctl.h>

#include "program.h"

using namespace program;

namespace {

void close_all() {
  for (int i = 3; i < 1024; ++i) ::close(i);
  require(::close_range(3, ~0u, 0) == 0, "close_range");
}

// In the daemon. `words` were mapped two processes before.
void live(uint64_t* words, uint64_t bytes, const char* answer) {
  require(is_filled(words, bytes / 8, 2), "what was mapped before is there");
  fill(words, bytes / 16, 3);
  const int number = ::open("daemon", O_RDWR);
  require(number == 3, "the first descriptor is 3");
  uint64_t* own = map(number, bytes, PROT_READ | PROT_WRITE);
  require(is_filled(own, bytes / 16, 3), "the new mapping shows what the old one wrote");
  require(is_filled(own + bytes / 16, bytes / 16, 2, bytes / 16), "and the rest as it was");
  close_all();
  fill(own, bytes / 8, 4);
  require(is_filled(words, bytes / 8, 4), "the old mapping shows what the new one wrote");
  require(::munmap(words, bytes) == 0, "munmap");
  const int to = ::open("daemon.part", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const char text[] = "the daemon has its mappings\n";
  require(::write(to, text, sizeof text - 1) == sizeof text - 1, "write");
  require(::rename("daemon.part", answer) == 0, "rename");
}

// In the first child: it maps, and leaves the daemon behind.
void start(uint64_t bytes, const char* answer) {
  const int number = make_file("daemon", bytes, 1);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  require(is_filled(words, bytes / 8, 1), "the mapping shows the file");
  fill(words, bytes / 8, 2);
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child > 0) ::_exit(0);
  require(::setsid() >= 0, "setsid");
  const pid_t grandchild = ::fork();
  require(grandchild >= 0, "fork");
  if (grandchild > 0) ::_exit(0);
  close_all();
  const int null = ::open("/dev/null", O_RDWR);
  require(null == 3, "the first descriptor is 3");
  ::dup2(null, 0);
  ::dup2(null, 1);
  ::close(null);
  live(words, bytes, answer);
  ::_exit(0);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: daemon DIR ANSWER [BYTES]\n");
    return 2;
  }
  const char* answer = arguments[2];
  arguments[2] = arguments[1];
  const uint64_t bytes = begin(count - 1, arguments + 1, 1 << 20);
  ::unlink(answer);
  // The daemon becomes our child when its parents have gone, so that its end can be waited for.
  require(::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "prctl");
  const pid_t child = ::fork();
  if (child == 0) start(bytes, answer);
  require(child > 0, "fork");
  int status = 0;
  while (::waitpid(-1, &status, 0) > 0) require(status == 0, "each process ends well");
  require(errno == ECHILD, "waitpid");
  char text[100] = "";
  const int number = ::open(answer, O_RDONLY);
  require(number >= 0 && ::read(number, text, sizeof text - 1) > 0, "there is an answer");
  std::printf("%s", text);
  uint64_t back[512];
  const int file = ::open("daemon", O_RDONLY);
  for (uint64_t at = 0; at < bytes; at += sizeof back) {
    require(::pread(file, back, sizeof back, static_cast<off_t>(at)) == sizeof back, "pread");
    require(is_filled(back, 512, 4, at / 8), "the file has what the daemon wrote");
  }
  std::printf("the file has what the daemon wrote\n");
  return 0;
}
