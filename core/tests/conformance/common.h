// Common: memory that a test and the processes that it forks both see; and how it waits for them.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/os/kernel_features.h"
#include "core/os/wait.h"

namespace outcore::scene {

// Memory that forked processes share, by the kernel; zero at first.
template <typename T>
class Common {
 public:
  explicit Common(size_t count = 1) : count_(count) {
    void* const at = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    at_ = static_cast<T*>(at);
  }
  ~Common() { ::munmap(at_, count_ * sizeof(T)); }
  Common(const Common&) = delete;
  Common& operator=(const Common&) = delete;

  T& operator[](size_t i) const { return at_[i]; }

 private:
  const size_t count_;
  T* at_ = nullptr;
};

// Until the word is as large, or the child has ended without it. Others have the processors.
inline void wait_for_child(std::atomic<uint32_t>& word, uint32_t least, pid_t child) {
  siginfo_t ended{};
  while (word.load() < least && ended.si_pid == 0) {
    ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT);
    os::wait_between_processes(&word, word.load(), 1'000'000);
  }
  EXPECT_GE(word.load(), least);
}

// Waits for the child's end: its exit status, or -signal.
inline int status_of(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

// Why processes cannot share pages of a buffer here, for GTEST_SKIP(); empty: they can.
inline std::string why_no_buffers() {
  const auto kernel = os::detect_kernel_features("all");
  EXPECT_TRUE(kernel.ok()) << kernel.message();
  if (kernel.ok() && kernel.value().has_sigbus && kernel.value().has_write_tracking) return {};
  return "pages are shared by userfaultfd alone: " +
         (kernel.ok() ? kernel.value().why_no_userfaultfd : kernel.message());
}

}  // namespace outcore::scene
