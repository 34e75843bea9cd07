// Cases: what the window_*.cc share. Each case runs in a process of its own, on a new file that it
// maps alone, and ends that process with 1 and one line if it finds something wrong; one that hangs
// is ended. `program DIR [CASE]` runs all of them, or one.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>

#include <atomic>

#include "program.h"

namespace program {

inline constexpr uint64_t kMappedBytes = 4 << 20;
// What a case writes to lies before it; the rest stays as it was.
inline constexpr uint64_t kRoomBytes = 64 * kPageBytes;
// Arguments begin just before the end of a page, so that most lie in two.
inline constexpr uint64_t kA = 5 * kPageBytes - 8, kB = 9 * kPageBytes - 16, kC = 17 * kPageBytes,
                          kD = 33 * kPageBytes - 8;

struct Mapped {
  int number = -1;
  unsigned char* m = nullptr;
  unsigned char* at(uint64_t offset) const { return m + offset; }
  uint64_t* words() const { return reinterpret_cast<uint64_t*>(m); }
  template <typename T>
  T* as(uint64_t offset) const {
    return reinterpret_cast<T*>(m + offset);
  }
  void evict() const { require(::madvise(m, kMappedBytes, MADV_DONTNEED) == 0, "madvise"); }
  long sum() const {
    long sum = 0;
    for (uint64_t at = 0; at < kMappedBytes; at += kPageBytes) sum += m[at];
    return sum;
  }
};

// The case's file; it is removed when the case has ended.
inline constexpr const char* kFile = "mapped";

inline Mapped map_new_file(int protection = PROT_READ | PROT_WRITE, int flags = MAP_SHARED) {
  Mapped p;
  p.number = make_file(kFile, kMappedBytes, 1);
  p.m = reinterpret_cast<unsigned char*>(map(p.number, kMappedBytes, protection, flags));
  return p;
}

// Each page shows the file, and a call of the C library finds its buffer.
inline void require_works(const Mapped& p) {
  constexpr uint64_t first = kRoomBytes / 8;
  require(is_filled(p.words() + first, (kMappedBytes - kRoomBytes) / 8, 1, first),
          "the mapping shows the file");
  utsname here{};
  require(::uname(&here) == 0, "uname");
  p.evict();
  auto* const there = p.as<utsname>(kA);
  require(::uname(there) == 0, "uname into the mapping");
  require(std::strcmp(there->nodename, here.nodename) == 0, "uname's answer is in the mapping");
}

// Calls that nobody between can follow: what they are given is no more than memory from now on.
inline void hand_back(const Mapped& p) {
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  p.evict();
  require(::ioctl(ends[0], FIONREAD, p.at(kD)) == 0 && *p.as<int>(kD) == 0, "FIONREAD");
  ::madvise(p.m, kMappedBytes, MADV_DONTFORK);
  ::madvise(p.m, kMappedBytes, MADV_DOFORK);
}

inline pid_t thread_id() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

// Until a thread of this process sleeps in the kernel, and some times again.
inline void wait_until_asleep(const std::atomic<pid_t>& thread) {
  while (thread == 0) ::sched_yield();
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread.load());
  for (int times = 0; times < 3;) {
    const int number = ::open(path, O_RDONLY);
    if (number < 0) return;  // it has ended
    const ssize_t n = ::read(number, text, sizeof text - 1);
    ::close(number);
    if (n <= 0) return;
    text[n] = 0;
    const char* const state = std::strrchr(text, ')');
    if (state != nullptr && state[2] == 'S')
      ++times;
    else
      times = 0;
    ::sched_yield();
  }
}

struct Case {
  const char* name;
  void (*run)();
};

// Whether it ended well.
inline bool run_case(const Case& c) {
  constexpr time_t kSecondsMax = 20;
  sigset_t child_ended, before;
  sigemptyset(&child_ended);
  sigaddset(&child_ended, SIGCHLD);
  require(::sigprocmask(SIG_BLOCK, &child_ended, &before) == 0, "sigprocmask");
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    c.run();
    ::_exit(0);
  }
  require(child > 0, "fork");
  const timespec limit{kSecondsMax, 0};
  while (::sigtimedwait(&child_ended, nullptr, &limit) < 0) {
    if (errno == EINTR) continue;
    ::kill(child, SIGKILL);
    std::fprintf(stderr, "FAILED: %s: it hangs\n", c.name);
    break;
  }
  const int code = code_of(child);
  ::unlink(kFile);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (code == 0)
    std::printf("%s: as it must be\n", c.name);
  else
    std::fprintf(stderr, "FAILED: %s: it ended with %d\n", c.name, code);
  return code == 0;
}

template <size_t size>
int run_cases(int count, char** arguments, const Case (&cases)[size]) {
  char* only_folder[] = {arguments[0], arguments[count > 1 ? 1 : 0], nullptr};
  begin(count < 2 ? count : 2, only_folder);
  ::signal(SIGCHLD, SIG_DFL);
  bool is_well = true, is_any = false;
  for (const Case& c : cases) {
    if (count > 2 && std::strcmp(arguments[2], c.name) != 0) continue;
    is_any = true;
    if (!run_case(c)) is_well = false;
  }
  if (!is_any) fail("no case is called %s", arguments[2]);
  return is_well ? 0 : 1;
}

}  // namespace program
