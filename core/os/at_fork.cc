#include "core/os/at_fork.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "core/base/assert.h"

namespace outcore::os {
namespace {

struct Handlers {
  void (*before)() = nullptr;
  void (*after_in_parent)() = nullptr;
  void (*after_in_child)() = nullptr;
};
constexpr unsigned kCount = static_cast<unsigned>(ForkOrder::kCount);

constinit Handlers handlers[kCount];
constinit std::atomic<uint32_t> claimed_bits{0}, registered_bits{0};  // by order
constinit std::atomic<uint32_t> generation{1};
constinit std::atomic<pid_t> owner{0};  // of this memory; 0: not loaded yet
// Those that this fork() calls: of one that is registered meanwhile, `before` was not called.
thread_local constinit uint32_t called = 0;
thread_local constinit sigset_t signals_before{};

void call(unsigned order, void (*Handlers::*which)()) {
  if ((called >> order & 1) != 0 && handlers[order].*which != nullptr) (handlers[order].*which)();
}

void before_fork() {
  sigset_t all;
  sigfillset(&all);
  for (const int fault : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
  ::pthread_sigmask(SIG_BLOCK, &all, &signals_before);
  called = registered_bits.load(std::memory_order_acquire);
  for (unsigned order = kCount; order-- > 0;) call(order, &Handlers::before);
}

void after_in_parent() {
  for (unsigned order = 0; order < kCount; ++order) call(order, &Handlers::after_in_parent);
  ::pthread_sigmask(SIG_SETMASK, &signals_before, nullptr);
}

void after_in_child() {
  generation.fetch_add(1, std::memory_order_relaxed);
  owner.store(::getpid(), std::memory_order_relaxed);
  for (unsigned order = 0; order < kCount; ++order) call(order, &Handlers::after_in_child);
  ::pthread_sigmask(SIG_SETMASK, &signals_before, nullptr);
}

// At load: ours come first, so before fork() nothing of the program runs after them, and after it
// nothing before. Under `outcore run` this call itself comes by at_fork() for the first time.
__attribute__((constructor)) void begin() {
  owner.store(::getpid(), std::memory_order_relaxed);
  const int error = ::pthread_atfork(before_fork, after_in_parent, after_in_child);
  OC_CHECK(error == 0);
}

}  // namespace

void at_fork(ForkOrder order, void (*before)(), void (*after_in_parent)(),
             void (*after_in_child)()) {
  const auto index = static_cast<unsigned>(order);
  OC_CHECK(index < kCount);
  const uint32_t bit = uint32_t{1} << index;
  if ((claimed_bits.fetch_or(bit) & bit) != 0) return;
  handlers[index] = {before, after_in_parent, after_in_child};
  registered_bits.fetch_or(bit, std::memory_order_release);
}

uint32_t process_generation() { return generation.load(std::memory_order_relaxed); }

bool is_in_others_memory() {
  const pid_t of = owner.load(std::memory_order_relaxed);
  return of != 0 && of != ::getpid();
}

}  // namespace outcore::os
