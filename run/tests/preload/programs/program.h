// Program: what the small programs of this folder share: files, words of bytes, and their verdict.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace program {

inline constexpr uint64_t kPageBytes = 4096;

[[noreturn, gnu::format(printf, 1, 2)]] inline void fail(const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "FAILED: %s (errno %d)\n", line, errno);
  std::fflush(nullptr);
  ::_exit(1);
}

// Fails unless it holds.
inline void require(bool holds, const char* what) {
  if (!holds) fail("%s", what);
}

// The word at a place of the file that a seed makes.
inline uint64_t word_at(uint64_t seed, uint64_t index) {
  uint64_t x = (index + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 31)) * 0x94d049bb133111ebu;
  return x ^ (x >> 29);
}
inline void fill(uint64_t* words, uint64_t count, uint64_t seed, uint64_t first = 0) {
  for (uint64_t i = 0; i < count; ++i) words[i] = word_at(seed, first + i);
}
inline bool is_filled(const uint64_t* words, uint64_t count, uint64_t seed, uint64_t first = 0) {
  for (uint64_t i = 0; i < count; ++i)
    if (words[i] != word_at(seed, first + i)) return false;
  return true;
}

// Makes a file of such words; returns its descriptor, open for reading and writing.
inline int make_file(const char* path, uint64_t bytes, uint64_t seed) {
  const int number = ::open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (number < 0) fail("cannot make %s", path);
  uint64_t words[kPageBytes / 8];
  for (uint64_t at = 0; at < bytes; at += kPageBytes) {
    fill(words, kPageBytes / 8, seed, at / 8);
    if (::pwrite(number, words, kPageBytes, static_cast<off_t>(at)) != kPageBytes)
      fail("cannot write %s", path);
  }
  return number;
}

inline uint64_t* map(int number, uint64_t bytes, int prot, int flags = MAP_SHARED) {
  void* at = ::mmap(nullptr, bytes, prot, flags, number, 0);
  require(at != MAP_FAILED, "mmap");
  return static_cast<uint64_t*>(at);
}

// Memory of the process's own with such words: a large allocation.
inline uint64_t* allocate(uint64_t bytes, uint64_t seed) {
  uint64_t* words = map(-1, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  fill(words, bytes / 8, seed);
  return words;
}

// What has changed just now is not shared with other processes.
inline void settle(const char* path) {
  for (;;) {
    struct stat about;
    timespec now{};
    require(::stat(path, &about) == 0 && ::clock_gettime(CLOCK_REALTIME, &now) == 0, "the time");
    if ((now.tv_sec - about.st_ctim.tv_sec) * 1'000'000'000 + now.tv_nsec - about.st_ctim.tv_nsec >
        40'000'000)
      return;
    ::sched_yield();
  }
}

// Waits for a child; its exit code, or 1000 + the signal that ended it.
inline int code_of(pid_t child) {
  require(child >= 0, "fork");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) require(errno == EINTR, "waitpid");
  return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

// `program DIR [BYTES]`: goes to the folder and returns the size, a multiple of the page.
inline uint64_t begin(int count, char** arguments, uint64_t bytes = 1 << 20) {
  if (count < 2 || ::chdir(arguments[1]) != 0) {
    std::fprintf(stderr, "usage: %s DIR [BYTES]\n", arguments[0]);
    std::exit(2);
  }
  if (count > 2) bytes = std::strtoull(arguments[2], nullptr, 0);
  bytes -= bytes % kPageBytes;
  if (bytes < 16 * kPageBytes) bytes = 16 * kPageBytes;
  std::setvbuf(stdout, nullptr, _IONBF, 0);  // nothing is printed twice by a child
  return bytes;
}

// A system call by an instruction of the program's own: -errno if it fails.
inline long call_raw(long number, long a, long b, long c = 0, long d = 0, long e = 0, long f = 0) {
  long result = number;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace program
