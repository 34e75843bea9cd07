// Kernel fixture: the few objects that the tests of kernel facts are made of. Tests only.
//
// Calls return 0 or -errno, or say in words why the kernel or the privilege refuses: such a test is
// skipped.
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

// Ends the test as skipped with the reason, unless the reason is empty.
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

// Some pages of address space, unmapped at the end.
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

// What a touch of one byte came to; the signal it raised, if any, is caught.
struct Touch {
  int signal = 0;  // 0: the byte was there
  int code = 0;
  const char* address = nullptr;
  bool is_write = false;  // by the page fault's error code; x86 only
  char value = 0;         // read: the byte
};
Touch read_byte(const char* at);
Touch write_byte(char* at, char value);
// The same for any piece of code, which must be safe to jump out of.
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

  void close();  // everything that waits goes on, unwatched

  // Empty, or why it cannot be had. `features` as the kernel names them, without SIGBUS.
  std::string open(Taking taking, uint64_t features, Reach reach = Reach::kUserOnly);
  // Opens for shared frames (memfd: missing, minor, write protection without faults) and watches.
  std::string open_shared(const Mapping& mapping, Taking taking = Taking::kSignals,
                          uint64_t more_features = 0);
  // Opens for private frames (anonymous: missing, synchronous write protection) and watches.
  std::string open_private(const Mapping& mapping, Taking taking = Taking::kSignals);
  std::string watch(const Mapping& mapping, uint64_t mode) const;

  // Fills one page with `value`. The mode UFFDIO_COPY_MODE_WP write-protects it.
  int copy(char* page, char value, uint64_t mode = 0) const;
  struct Copied {
    int error;      // 0 or -errno
    int64_t bytes;  // what the kernel says of it: bytes copied, or -errno
  };
  Copied copy_many(char* first, size_t pages, char value, uint64_t mode = 0) const;
  int resume(char* page, bool is_protected) const;  // UFFDIO_CONTINUE
  int zero(char* page) const;
  int protect(char* first, size_t pages, bool on) const;
  int poison(char* page) const;
  int move(char* to, char* from) const;
  int wake(char* page) const;

  // Waits for the next message and returns the page that it is about.
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
  // Empty, or why PAGEMAP_SCAN cannot be had.
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
  ~Sleeper();  // before join(), in a test that failed: ends the watch, so that the thread goes on
  pid_t id() const;
  // Asleep now and not woken: a thread that has been woken but has not run yet is not asleep.
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
// Empty, or why process_madvise on oneself cannot do this advice.
std::string lacks_self_advice(int advice);
// The exit status (as of waitpid) of a child that runs `work` and exits with what it returns.
int status_of_child(const std::function<int()>& work);

}  // namespace outcore::kernel_test
