// full_disk DIR BYTES msync|munmap|end|touch|catch: writes BYTES through a mapping of a sparse file
// on a disk that may have less. `msync`: then stores it, twice. `munmap`: unmaps it, which fails.
// `end`: leaves that to its end. `touch`,
// `catch`: is to go on until a touch is a SIGBUS, of which `catch` has a handler. Says what it was
// told, and whether that took ten seconds.
#include <signal.h>
#include <time.h>

#include "program.h"

using namespace program;

namespace {

uint64_t* words = nullptr;
volatile uint64_t at = 0;  // the word that is written

void on_bus(int, siginfo_t* info, void*) {
  const bool is_there = info->si_addr == static_cast<void*>(words + at);
  const char* text = is_there ? "SIGBUS where it wrote\n" : "SIGBUS elsewhere\n";
  require(::write(STDOUT_FILENO, text, std::strlen(text)) > 0, "write");
  ::_exit(3);
}

long seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments);
  const char* way = count > 3 ? arguments[3] : "end";
  const int number = ::open("full_disk", O_RDWR | O_CREAT | O_TRUNC, 0600);
  require(number >= 0 && ::ftruncate(number, static_cast<off_t>(bytes)) == 0, "ftruncate");
  words = map(number, bytes, PROT_READ | PROT_WRITE);
  struct sigaction action {};
  action.sa_sigaction = on_bus;
  action.sa_flags = SA_SIGINFO;
  if (std::strcmp(way, "catch") == 0)
    require(::sigaction(SIGBUS, &action, nullptr) == 0, "sigaction");
  for (uint64_t i = 0; i < bytes / 8; ++i) {
    at = i;
    words[i] = word_at(2, i);
  }
  std::printf("all written\n");
  if (std::strcmp(way, "msync") == 0) {
    for (int i = 0; i < 2; ++i) {
      const long before = seconds();
      const int result = ::msync(words, bytes, MS_SYNC);
      std::printf("msync: %s\n", result == 0 ? "done" : std::strerror(errno));
      std::printf("slow: %ld\n", (seconds() - before) / 10);
    }
    require(is_filled(words, bytes / 8, 2), "the bytes are there still");
  }
  if (std::strcmp(way, "munmap") == 0) {
    const int result = ::munmap(words, bytes);
    std::printf("munmap: %s\n", result == 0 ? "done" : std::strerror(errno));
  }
  return 0;
}
