#include "os/wait.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

#include "base/clock.h"

namespace outcore::os {

WaitHooks* wait_hooks = nullptr;

void wait(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns) {
  if (wait_hooks != nullptr) return wait_hooks->wait(word, while_value, timeout_ns);
  const timespec timeout = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                            static_cast<long>(timeout_ns % 1'000'000'000)};
  ::syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_value, &timeout, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>* word) {
  if (wait_hooks != nullptr) return wait_hooks->wake_all(word);
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void wake(std::atomic<uint32_t>* word, uint32_t most) {
  if (wait_hooks != nullptr) return wait_hooks->wake_all(word);
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, nullptr, nullptr, 0);
}

void yield() {
  if (wait_hooks != nullptr) return wait_hooks->yield();
  ::sched_yield();
}

uint64_t now_ns() { return wait_hooks != nullptr ? wait_hooks->now_ns() : base::now_ns(); }

void Lock::lock() {
  if (try_lock()) return;
  while (word_.exchange(2, std::memory_order_acquire) != 0) wait(&word_, 2, 1'000'000'000);
}

void Lock::unlock() {
  if (word_.exchange(0, std::memory_order_release) == 2) wake(&word_, 1);
}

SignalBlock::SignalBlock() {
  static_assert(sizeof(sigset_t) <= sizeof saved_);
  sigset_t all;
  sigfillset(&all);
  // A fault is synchronous: blocked, it would kill the process.
  for (int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, signal);
  ::pthread_sigmask(SIG_BLOCK, &all, reinterpret_cast<sigset_t*>(saved_));
}

SignalBlock::~SignalBlock() {
  ::pthread_sigmask(SIG_SETMASK, reinterpret_cast<const sigset_t*>(saved_), nullptr);
}

}  // namespace outcore::os
