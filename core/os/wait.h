// Wait: sleeping until a 32-bit word changes, and a small lock made of it. Any thread, the fault
// path too.
//
// Every wait of the engine goes through here, so that a simulation can put its own scheduler in
// their place (wait_hooks): then threads are fibers, and one seed decides every interleaving.
#pragma once

#include <atomic>
#include <cstdint>

namespace outcore::os {

struct WaitHooks {
  virtual ~WaitHooks() = default;
  virtual void wait(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns) = 0;
  virtual void wake_all(std::atomic<uint32_t>* word) = 0;
  virtual void yield() = 0;
  virtual uint64_t now_ns() = 0;
  // Threads may overtake each other here. Asked in checked builds only.
  virtual void interleave() {}
};
// nullptr but in simulations. Set before any thread of the engine runs.
extern WaitHooks* wait_hooks;

// Returns when the word is not `while_value`, was woken, timed out or was interrupted: callers
// check again.
void wait(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns);
void wake_all(std::atomic<uint32_t>* word);
void wake(std::atomic<uint32_t>* word, uint32_t most);
void yield();
uint64_t now_ns();

// Lock: mutual exclusion whose holder cannot be interrupted by a signal that needs it. The caller
// blocks signals (SignalBlock) or is inside the fault handler, which runs with all signals blocked.
class Lock {
 public:
  bool try_lock() {
    uint32_t expected = 0;
    return word_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
  }
  // By anybody: for assertions.
  bool is_held() const { return word_.load(std::memory_order_relaxed) != 0; }
  void lock();
  void unlock();

 private:
  std::atomic<uint32_t> word_{0};  // 0 free, 1 held, 2 held and somebody waits
};

// SignalBlock: no asynchronous signal reaches this thread during its life. Engine calls from
// ordinary code hold one: a program's signal handler that touches managed memory must not find its
// own thread in the middle of a fill.
class SignalBlock {
 public:
  SignalBlock();
  ~SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  alignas(8) unsigned char saved_[128];
};

// Locks for a scope. REQUIRES: as Lock.
class Locked {
 public:
  explicit Locked(Lock& lock) : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Lock& lock_;
};

}  // namespace outcore::os
