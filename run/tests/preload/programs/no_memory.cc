// no_memory DIR [BYTES]: a program has used up the addresses that it may have (RLIMIT_AS), and goes
// on: it writes to its mapping and its file, stores, unmaps and ends. Each call does what it says
// or fails with ENOMEM, no process ends for want of memory, and what was written is in the file.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "program.h"

using namespace program;

namespace {

void use_up_addresses() {
  char text[64] = "";
  const int number = ::open("/proc/self/statm", O_RDONLY);
  require(::read(number, text, sizeof text - 1) > 0, "statm");
  ::close(number);
  const rlim_t used = std::strtoull(text, nullptr, 10) * kPageBytes;
  const rlimit limit{used + (1 << 20), RLIM_INFINITY};
  require(::setrlimit(RLIMIT_AS, &limit) == 0, "setrlimit");
  for (size_t bytes = 1 << 20; bytes >= kPageBytes; bytes /= 2)
    while (::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    }
  for (size_t bytes = 1 << 16; bytes >= 16;)
    if (std::malloc(bytes) == nullptr) bytes /= 2;
}

bool may_be(int result) { return result == 0 || errno == ENOMEM; }

// What each process does when nothing is left; the mapping is written to from end to end before.
constexpr struct {
  const char* name;
  void (*live)(uint64_t* words, uint64_t bytes, int number);
} kWays[] = {
    {"msync", [](uint64_t* w, uint64_t n, int) { require(::msync(w, n, MS_SYNC) == 0, "msync"); }},
    {"munmap", [](uint64_t* w, uint64_t n, int) { require(may_be(::munmap(w, n)), "munmap"); }},
    {"munmap of a part",
     [](uint64_t* w, uint64_t n, int) {
       require(may_be(::munmap(w + n / 32, n / 8)), "munmap of a part");
     }},
    {"mprotect", [](uint64_t* w, uint64_t n,
                    int) { require(may_be(::mprotect(w, n / 2, PROT_READ)), "mprotect"); }},
    {"madvise",
     [](uint64_t* w, uint64_t n, int) {
       require(may_be(::madvise(w, n, MADV_DONTNEED)) || errno == EAGAIN, "madvise");
     }},
    {"pwrite",
     [](uint64_t* w, uint64_t, int number) {
       const uint64_t word = word_at(2, 0);
       require(::pwrite(number, &word, 8, 0) == 8 || errno == ENOMEM, "pwrite");
       require(w[0] == word, "the mapping shows what was written");
     }},
    {"open", [](uint64_t*, uint64_t,
                int) { require(::open("no_memory", O_RDONLY) >= 0 || errno == ENOMEM, "open"); }},
    {"abort", [](uint64_t*, uint64_t, int) { std::abort(); }},
    {"return", [](uint64_t*, uint64_t, int) {}}};

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments, 1 << 20);
  for (const auto& way : kWays) {
    ::close(make_file("no_memory", bytes, 1));  // a file that another process has is the kernel's
    const pid_t child = ::fork();
    if (child == 0) {
      const int number = ::open("no_memory", O_RDWR);
      uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
      fill(words, bytes / 8, 2);
      use_up_addresses();
      for (uint64_t i = 0; i < bytes / 8; i += 512) words[i] = word_at(2, i);
      way.live(words, bytes, number);
      ::_exit(0);
    }
    const int code = code_of(child);
    if (code != 0 && code != 1000 + SIGABRT) fail("%s: it ended with %d", way.name, code);
    const int number = ::open("no_memory", O_RDONLY);
    uint64_t back[512];
    for (uint64_t at = 0; at < bytes; at += sizeof back) {
      require(::pread(number, back, sizeof back, static_cast<off_t>(at)) == sizeof back, "pread");
      if (!is_filled(back, 512, 2, at / 8)) fail("%s: bytes are lost", way.name);
    }
    ::close(number);
    std::printf("%s without memory\n", way.name);
  }
  return 0;
}
