#include "core/os/wait.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/cancel_block.h"

namespace outcore::os {

WaitHooks* wait_hooks = nullptr;

namespace {

constinit std::atomic<uint32_t> rest_is_told{0};
constinit thread_local bool may_rest = false;

void wait_on(std::atomic<uint32_t>* word, int how, uint32_t while_value, uint64_t timeout_ns) {
  const timespec timeout = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                            static_cast<long>(timeout_ns % 1'000'000'000)};
  // A wait may end at once, with EAGAIN, which a program would find after a call that succeeded.
  const int saved_errno = errno;
  ::syscall(SYS_futex, word, how, while_value, &timeout, nullptr, 0);
  errno = saved_errno;
}

}  // namespace

void rest_when_told() { may_rest = true; }

void rest_if_told() {
  constexpr uint64_t kLongNs = uint64_t{3600} * 1'000'000'000;
  while (may_rest && rest_is_told.load() != 0)
    wait_on(&rest_is_told, FUTEX_WAIT_PRIVATE, 1, kLongNs);
}

void tell_to_rest(bool is_told) {
  rest_is_told.store(is_told ? 1 : 0);
  if (!is_told) wake_all(&rest_is_told);
}

void wait(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns) {
  if (wait_hooks != nullptr) return wait_hooks->wait(word, while_value, timeout_ns);
  wait_on(word, FUTEX_WAIT_PRIVATE, while_value, timeout_ns);
  rest_if_told();
}

void wait_between_processes(std::atomic<uint32_t>* word, uint32_t while_value,
                            uint64_t timeout_ns) {
  if (wait_hooks != nullptr)
    return wait_hooks->wait_between_processes(word, while_value, timeout_ns);
  wait_on(word, FUTEX_WAIT, while_value, timeout_ns);
  rest_if_told();
}

void wake_between_processes(std::atomic<uint32_t>* word) {
  if (wait_hooks != nullptr) return wait_hooks->wake_between_processes(word);
  ::syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
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

void pause(uint64_t ns) {
  if (wait_hooks != nullptr) return wait_hooks->pause(ns);
  const timespec time = {static_cast<time_t>(ns / 1'000'000'000),
                         static_cast<long>(ns % 1'000'000'000)};
  const int saved_errno = errno;
  ::nanosleep(&time, nullptr);
  errno = saved_errno;
}

void pause_where_refused(int error) {
  constexpr uint64_t kPauseNs = 10'000'000;
  if (error == EINTR || error == EAGAIN) return;
  std::atomic<uint32_t> word{0};
  wait(&word, 0, kPauseNs);
}

uint64_t now_ns() { return wait_hooks != nullptr ? wait_hooks->now_ns() : base::now_ns(); }

void Lock::lock() {
  if (try_lock()) return;
  while (word_.exchange(2, std::memory_order_acquire) != 0) wait(&word_, 2, 1'000'000'000);
}

void Lock::unlock() {
  const uint32_t before = word_.exchange(0, std::memory_order_release);
  OC_CHECK(before != 0);
  if (before == 2) wake(&word_, 1);
}

namespace {

// What a SignalBlock saves: the kernel's part of the signal mask, and whether the thread can be
// cancelled.
struct Saved {
  uint64_t signals;
  int cancel_state;
  bool is_within;  // a SignalScope, which has done it
};

// Of SignalScopes of the thread. Initial-exec, because other models may allocate at a thread's
// first access.
[[gnu::tls_model("initial-exec")]] constinit thread_local uint32_t scopes = 0;

}  // namespace

// It also prevents cancellation: see cancel_block.h.
SignalBlock::SignalBlock() {
  static_assert(sizeof(Saved) <= sizeof saved_);
  Saved saved{0, 0, scopes != 0};
  if (saved.is_within) {
    __builtin_memcpy(saved_, &saved, sizeof saved);
    return;
  }
  sigset_t all, before;
  sigfillset(&all);
  // These signals report faults of the thread itself: if they were blocked, a fault would kill the
  // process.
  for (int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) sigdelset(&all, signal);
  saved.cancel_state = CancelBlock::disable();
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  __builtin_memcpy(&saved.signals, &before, sizeof saved.signals);
  __builtin_memcpy(saved_, &saved, sizeof saved);
}

SignalBlock::~SignalBlock() {
  Saved saved;
  __builtin_memcpy(&saved, saved_, sizeof saved);
  if (saved.is_within) return;
  sigset_t before;
  sigemptyset(&before);
  __builtin_memcpy(&before, &saved.signals, sizeof saved.signals);
  CancelBlock::restore(saved.cancel_state);  // before a handler that may never return runs
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

SignalScope::SignalScope() { ++scopes; }

SignalScope::~SignalScope() {
  OC_ASSERT(scopes != 0);
  --scopes;
}

}  // namespace outcore::os
