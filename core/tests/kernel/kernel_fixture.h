// Kernel fixture: objects that the tests of kernel facts use.
//
// Calls return 0 or -errno, or a text that says why the kernel or the privileges do not allow them;
// then the test is skipped.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/os/uapi.h"

// Skips the test with the reason, unless the reason is empty.
#define OC_SKIP_IF(reason)                   \
  do {                                       \
    const std::string why_ = (reason);       \
    if (!why_.empty()) GTEST_SKIP() << why_; \
  } while (false)

namespace outcore::kernel_test {

inline constexpr size_t kPage = 4096;
inline constexpr int kReadWrite = PROT_READ | PROT_WRITE;

// A memory file.
class Memfd {
 public:
  explicit Memfd(size_t pages);
  Memfd(const Memfd&) = delete;
  Memfd& operator=(const Memfd&) = delete;
  ~Memfd();
  int fd() const { return fd_; }
  bool holds(size_t page) const;  // has memory for it, mapped or not
  void write(size_t page, char value) const;
  char first_byte(size_t page) const;
  int punch(size_t page) const;

 private:
  int fd_;
};

// Some pages of address space; the destructor unmaps them.
class Mapping {
 public:
  static Mapping anonymous(size_t pages, int protection = kReadWrite);
  static Mapping of(int fd, size_t pages, int protection = kReadWrite);
  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();
  char* page(size_t i) const { return base_ + i * kPage; }
  size_t pages() const { return pages_; }
  size_t size_bytes() const { return pages_ * kPage; }

 private:
  Mapping(char* base, size_t pages) : base_(base), pages_(pages) {}
  char* base_;
  size_t pages_;
};

// The result of touching one byte; a signal that it raises is caught.
struct Touch {
  int signal = 0;  // 0: no signal
  int code = 0;
  const char* address = nullptr;
  bool is_write = false;  // by the page fault's error code; x86 only
  char value = 0;         // read: the byte
};
Touch read_byte(const char* at);
Touch write_byte(char* at, char value);
// The same for any code that it is safe to jump out of.
Touch run_catching(const std::function<char()>& work);

enum class Taking { kSignals, kMessages };
enum class Reach { kUserOnly, kSystemCallsToo };

// A userfaultfd.
class Userfault {
 public:
  Userfault() = default;
  Userfault(const Userfault&) = delete;
  Userfault& operator=(const Userfault&) = delete;
  ~Userfault();

  void close();  // everything that waits continues, unregistered

  // Empty, or why it is not available. `features` as the kernel names them, without SIGBUS.
  std::string open(Taking taking, uint64_t features, Reach reach = Reach::kUserOnly);
  // Opens for shared frames (memfd: missing, minor, write protection without faults) and registers.
  std::string open_shared(const Mapping& mapping, Taking taking = Taking::kSignals,
                          uint64_t more_features = 0);
  // Opens for private frames (anonymous: missing, synchronous write protection) and registers.
  std::string open_private(const Mapping& mapping, Taking taking = Taking::kSignals);
  std::string watch(const Mapping& mapping, uint64_t mode) const;

  // Fills one page with `value`. The mode UFFDIO_COPY_MODE_WP write-protects it.
  int copy(char* page, char value, uint64_t mode = 0) const;
  struct Copied {
    int error;      // 0 or -errno
    int64_t bytes;  // the kernel's result: bytes copied, or -errno
  };
  Copied copy_many(char* first, size_t pages, char value, uint64_t mode = 0) const;
  int resume(char* page, bool is_protected) const;  // UFFDIO_CONTINUE
  int zero(char* page) const;
  int protect(char* first, size_t pages, bool on) const;
  int poison(char* page) const;
  int move(char* to, char* from) const;
  int wake(char* page) const;

  // Waits for the next message and returns its page.
  char* next_fault() const;
  bool has_message() const;

 private:
  int fd_ = -1;
};

// /proc/self/pagemap.
class Pagemap {
 public:
  Pagemap();
  Pagemap(const Pagemap&) = delete;
  Pagemap& operator=(const Pagemap&) = delete;
  ~Pagemap();
  // Empty, or why PAGEMAP_SCAN is not available.
  std::string lacks_scan() const;
  // Numbers of the pages that PAGEMAP_SCAN reports as written.
  std::vector<size_t> written(const Mapping& mapping) const;
  // The same, and write-protects them again in the same step.
  std::vector<size_t> written_then_protect(const Mapping& mapping) const;
  // Bit 57 of the page's word: write-protected by a userfaultfd. Linux 5.14.
  bool is_protected(const char* page) const;
  bool is_present(const char* page) const;

 private:
  std::vector<size_t> scan(const Mapping& mapping, uint64_t flags) const;
  uint64_t word(const char* page) const;
  int fd_;
};

// A thread that is expected to sleep in the kernel.
class Sleeper {
 public:
  Sleeper(Userfault& faults, std::function<void()> work);
  // Before join(), in a test that failed: closes the userfaultfd, so that the thread continues.
  ~Sleeper();
  pid_t id() const;
  // The thread is asleep and was not woken. A thread that was woken but has not run yet is not
  // asleep.
  bool is_asleep() const;
  bool has_finished() const { return has_finished_; }
  void join();

 private:
  Userfault& faults_;
  std::atomic<pid_t> id_ = 0;
  std::atomic<bool> has_finished_ = false;
  std::thread thread_;
};

// process_madvise on this process: bytes advised, or -errno.
ssize_t advise_self(const std::vector<iovec>& ranges, int advice);
// Empty, or why process_madvise on the own process does not support this advice.
std::string lacks_self_advice(int advice);
// Runs `work` in a child, which exits with its result; returns the status as from waitpid.
int status_of_child(const std::function<int()>& work);

}  // namespace outcore::kernel_test
