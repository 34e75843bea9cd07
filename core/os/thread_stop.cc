#include "core/os/thread_stop.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/assert.h"

namespace outcore::os {
namespace {

constexpr uint64_t kStoppedNsMax = 2'000'000'000;

// As the kernel writes it; opendir() would allocate.
struct DirectoryEntry {
  uint64_t inode;
  int64_t next;
  uint16_t size_bytes;
  uint8_t type;
  char name[];
};

// Parses a line of /proc/…/status that contains a mask in hexadecimal.
uint64_t mask_in(const char* text, const char* name) {
  const char* line = std::strstr(text, name);
  return line == nullptr ? 0 : std::strtoull(line + std::strlen(name), nullptr, 16);
}

}  // namespace

ThreadStop& ThreadStop::instance() {
  static ThreadStop* const made = new ThreadStop;  // never destroyed: threads may be inside
  return *made;
}

// While a thread is stopped, no other handler runs on it, whatever its mask.
void ThreadStop::on_signal(int) {
  const int before = errno;
  wait_for_end();
  errno = before;
}

void ThreadStop::wait_for_end() {
  ThreadStop& stop = instance();
  const uint32_t epoch = stop.epoch_.load(std::memory_order_acquire);
  if (epoch % 2 == 0) return;  // the signal belongs to a stop that is over
  stop.answered_.fetch_add(1, std::memory_order_acq_rel);
  wake_all(&stop.answered_);
  const uint64_t until_ns = now_ns() + kStoppedNsMax;
  while (stop.epoch_.load(std::memory_order_acquire) == epoch && now_ns() < until_ns)
    wait(&stop.epoch_, epoch, 100'000'000);
}

// Chooses a signal that the program has not used so far.
bool ThreadStop::install() {
  struct sigaction now {};
  if (signal_ != 0 && ::sigaction(signal_, nullptr, &now) == 0 && now.sa_handler == on_signal)
    return true;
  signal_ = 0;
  for (int signal = SIGRTMAX - 3; signal > SIGRTMIN; --signal) {
    struct sigaction found {};
    if (::sigaction(signal, nullptr, &found) != 0 || found.sa_handler != SIG_DFL) continue;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    for (const int fault : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP})
      sigdelset(&action.sa_mask, fault);
    if (::sigaction(signal, &action, nullptr) != 0) continue;
    signal_ = signal;
    return true;
  }
  return false;
}

// True if the thread blocks the signal, and so will not answer now: a thread inside Outcore blocks
// all signals, and will stop before it returns to the program; a thread of Outcore always blocks
// them; a thread of the program may.
bool ThreadStop::is_blocked(int thread, bool* is_pending) const {
  char path[64], text[4096];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;  // the thread has ended
  size_t bytes = 0;
  for (ssize_t n; bytes < sizeof text - 1; bytes += static_cast<size_t>(n))
    if ((n = ::read(file, text + bytes, sizeof text - 1 - bytes)) <= 0) break;
  ::close(file);
  text[bytes] = 0;
  const uint64_t bit = uint64_t{1} << (signal_ - 1);
  *is_pending = (mask_in(text, "\nSigPnd:") & bit) != 0;
  return (mask_in(text, "\nSigBlk:") & bit) != 0;
}

// Sends the signal. False if the thread need not be waited for.
bool ThreadStop::ask(int thread) {
  OC_CHECK(deaf_count_ <= kDeafMax);
  OC_CHECK(signal_ != 0);
  const auto deaf = std::find(deaf_, deaf_ + deaf_count_, thread);
  if (deaf != deaf_ + deaf_count_) {
    bool is_pending = false;
    if (is_blocked(thread, &is_pending) && is_pending) return false;
    *deaf = deaf_[--deaf_count_];
  }
  return ::syscall(SYS_tgkill, ::getpid(), thread, signal_) == 0;
}

// Sends the signal to threads that have not got it yet. True if there were any.
bool ThreadStop::ask_new_ones() {
  alignas(8) char entries[8192];
  const int self = static_cast<int>(::syscall(SYS_gettid));
  const int directory = ::open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  bool is_new = false;
  const uint32_t asked_before = asked_;
  for (long n; (n = ::syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0;)
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const DirectoryEntry*>(entries + at);
      at += entry->size_bytes;
      const int thread = static_cast<int>(std::strtol(entry->name, nullptr, 10));
      if (thread == 0 || thread == self || asked_ == kThreadsMax) continue;
      if (std::find(thread_, thread_ + asked_before, thread) != thread_ + asked_before) continue;
      is_new = true;
      OC_CHECK(asked_ < kThreadsMax);
      if (ask(thread)) thread_[asked_++] = thread;
    }
  ::close(directory);
  return is_new && asked_ != asked_before;
}

bool ThreadStop::have_all_answered() { return answered_.load(std::memory_order_acquire) >= asked_; }

uint32_t ThreadStop::stop(uint64_t wait_ns) {
  lock_.lock();
  if (!install()) return 0;
  asked_ = 0;
  answered_.store(0, std::memory_order_relaxed);
  // A forked child may have inherited a stop from its parent.
  epoch_.store((epoch_.load(std::memory_order_relaxed) + 2) | 1, std::memory_order_seq_cst);
  OC_CHECK(epoch_.load() % 2 == 1);
  const uint64_t start_ns = now_ns();
  uint64_t look_ns = start_ns + 1'000'000;
  // The next round finds threads that started meanwhile.
  while (ask_new_ones()) {
    while (!have_all_answered() && now_ns() < start_ns + wait_ns) {
      const uint32_t seen = answered_.load(std::memory_order_acquire);
      if (seen < asked_) wait(&answered_, seen, 500'000);
      if (now_ns() < look_ns) continue;
      uint32_t silent = 0;
      for (uint32_t i = 0; i < asked_; ++i) {
        bool is_pending = false;
        if (is_blocked(thread_[i], &is_pending)) ++silent;
      }
      // Threads that have answered block it, too, inside the handler.
      if (silent >= asked_) break;
      look_ns = now_ns() + 2'000'000;
    }
    if (now_ns() >= start_ns + wait_ns) break;
  }
  return answered_.load(std::memory_order_acquire);
}

void ThreadStop::go_on() {
  OC_CHECK(lock_.is_held());
  if (signal_ != 0) {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    wake_all(&epoch_);
    // The signal of threads that did not answer is still pending.
    const uint32_t answered = answered_.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < asked_ && answered < asked_ && deaf_count_ < kDeafMax; ++i)
      if (std::find(deaf_, deaf_ + deaf_count_, thread_[i]) == deaf_ + deaf_count_)
        deaf_[deaf_count_++] = thread_[i];
  }
  lock_.unlock();
}

}  // namespace outcore::os
