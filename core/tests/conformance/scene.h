// Scene: helpers for tests on the real kernel: files with known bytes, runtimes that ignore the
// environment, code in which a touch may fail, and children that may die.
#pragma once

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "outcore/runtime.h"
#include "tests/folder.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define OUTCORE_TEST_IS_SANITIZED 1
#else
#define OUTCORE_TEST_IS_SANITIZED 0
#endif

// Forked children of these tests have threads of their own, and end without cleaning up.
#ifdef __SANITIZE_THREAD__
extern "C" inline __attribute__((used)) const char* __tsan_default_options() {
  return "die_after_fork=0";
}
#endif

namespace outcore::scene {

using Bytes = std::vector<std::byte>;

inline constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

// The byte that belongs at this offset: no two system pages of a test's file are equal.
// The eight bytes of which `offset` is in, the lowest first.
inline uint64_t word_around(uint64_t offset) {
  const uint64_t x = (offset / 8 + 1) * 0x9E3779B97F4A7C15ull;
  return x ^ x >> 29;
}
inline std::byte byte_at(uint64_t offset) {
  return static_cast<std::byte>(word_around(offset) >> (offset % 8 * 8));
}

// By words: sanitized, a call for each byte took a tenth of the suite's time.
inline Bytes pattern(uint64_t size_bytes, uint64_t offset = 0) {
  static_assert(std::endian::native == std::endian::little);
  Bytes bytes(size_bytes);
  for (uint64_t i = 0; i < size_bytes;) {
    const uint64_t word = word_around(offset + i) >> ((offset + i) % 8 * 8);
    const uint64_t count = std::min(size_bytes - i, 8 - (offset + i) % 8);
    std::memcpy(bytes.data() + i, &word, count);
    i += count;
  }
  return bytes;
}

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.good()) << path;
}

inline Bytes read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  Bytes bytes(static_cast<size_t>(in.tellg()));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

// The first position where `got` differs from the pattern that starts at `offset`; `size_bytes` if
// there is none.
inline uint64_t first_difference(const std::byte* got, uint64_t size_bytes, uint64_t offset = 0) {
  for (uint64_t i = 0; i < size_bytes;) {
    uint64_t word = 0;
    if ((offset + i) % 8 == 0 && size_bytes - i >= sizeof word) {
      std::memcpy(&word, got + i, sizeof word);
      if (word == word_around(offset + i)) {
        i += sizeof word;
        continue;
      }
    }
    if (got[i] != byte_at(offset + i)) return i;
    ++i;
  }
  return size_bytes;
}

// Options that depend on the test only, and on the kernel version that the suite is told to assume.
inline RuntimeOptions options_with(uint64_t budget_bytes) {
  RuntimeOptions options;
  options.ignore_environment = true;
  options.budget_bytes = budget_bytes;
  if (const char* kernel = ::getenv("OUTCORE_KERNEL"); kernel != nullptr) options.kernel = kernel;
  return options;
}

// -- touches that may fail --

struct Touch {
  int signal = 0;  // 0: no signal
  int code = 0;
  const void* address = nullptr;
};

namespace detail {
inline thread_local sigjmp_buf escape;
inline thread_local volatile bool is_armed = false;
inline thread_local Touch caught;

// The handler of the program, installed before Outcore's.
inline void on_signal(int signal, siginfo_t* info, void*) {
  if (!is_armed) {
    ::signal(signal, SIG_DFL);
    return;
  }
  is_armed = false;
  caught = {signal, info->si_code, info->si_addr};
  siglongjmp(escape, 1);
}

inline bool install() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  return ::sigaction(SIGBUS, &action, nullptr) == 0 && ::sigaction(SIGSEGV, &action, nullptr) == 0;
}
inline const bool is_installed = install();
}  // namespace detail

// Runs `touch`, and returns which signal it raised. `touch` must own nothing, because the signal
// handler jumps out of it.
template <typename F>
[[nodiscard]] Touch touch_of(const F& touch) {
  detail::caught = {};
  if (sigsetjmp(detail::escape, 1) == 0) {
    detail::is_armed = true;
    touch();
  }
  detail::is_armed = false;
  return detail::caught;
}

[[nodiscard]] inline Touch read_of(const std::byte* address) {
  return touch_of([=] { static_cast<void>(*static_cast<const volatile std::byte*>(address)); });
}
[[nodiscard]] inline Touch write_of(std::byte* address, std::byte value) {
  return touch_of([=] { *static_cast<volatile std::byte*>(address) = value; });
}

// -- children --

struct Ending {
  int status = 0;    // as from waitpid
  std::string text;  // what it wrote to stderr
  bool has_exited(int code) const { return WIFEXITED(status) && WEXITSTATUS(status) == code; }
  bool was_killed_by(int signal) const { return WIFSIGNALED(status) && WTERMSIG(status) == signal; }
};

inline std::ostream& operator<<(std::ostream& out, const Ending& e) {
  return out << "status " << e.status << ", stderr: " << e.text;
}

// The first statement of a test that forks while other threads run.
#ifdef __SANITIZE_ADDRESS__
#define OUTCORE_NEEDS_FORK() \
  GTEST_SKIP() << "AddressSanitizer's allocator may be locked by another thread when one forks"
#else
#define OUTCORE_NEEDS_FORK() static_cast<void>(0)
#endif

// The first statement of a test whose child starts a runtime.
#ifdef __SANITIZE_THREAD__
#define OUTCORE_NEEDS_THREADS_IN_CHILD() \
  GTEST_SKIP() << "ThreadSanitizer knows no new threads in the child of a process that had some"
#else
#define OUTCORE_NEEDS_THREADS_IN_CHILD() OUTCORE_NEEDS_FORK()
#endif

// Runs `play` in a forked child, which exits with the status that it returns.
inline Ending in_child(const std::function<int()>& play) {
  int pipe_of[2];
  EXPECT_EQ(::pipe(pipe_of), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe_of[1], STDERR_FILENO);
    ::close(pipe_of[0]), ::close(pipe_of[1]);
    ::_exit(play());
  }
  ::close(pipe_of[1]);
  Ending ending;
  char part[512];
  for (ssize_t n; (n = ::read(pipe_of[0], part, sizeof part)) != 0;) {
    if (n > 0) ending.text.append(part, static_cast<size_t>(n));
    if (n < 0 && errno != EINTR) break;
  }
  ::close(pipe_of[0]);
  while (::waitpid(child, &ending.status, 0) < 0 && errno == EINTR) {
  }
  return ending;
}

// For a child, where a failed assertion of the test would be lost: ends the child with a message.
inline void require(bool is_true, const std::string& what) {
  if (is_true) return;
  std::fprintf(stderr, "not so: %s\n", what.c_str());
  ::_exit(99);
}

// -- what the process holds --

inline uint64_t count_descriptors() {
  uint64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

inline uint64_t count_lines_of(const std::string& path) {
  std::ifstream in(path);
  uint64_t count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

}  // namespace outcore::scene
