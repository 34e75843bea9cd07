// Wait: sleeping until a 32-bit word changes, and a small lock made of it. Any thread; the fault
// path.
//
// Every wait of the engine goes through this file, so that a simulation can replace it with its own
// scheduler (wait_hooks): then threads are fibers, and one seed determines every interleaving.
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
  virtual void pause(uint64_t) { yield(); }
  // The same words by other addresses: each process maps them somewhere else.
  virtual void wait_between_processes(std::atomic<uint32_t>* word, uint32_t while_value,
                                      uint64_t timeout_ns) {
    wait(word, while_value, timeout_ns);
  }
  virtual void wake_between_processes(std::atomic<uint32_t>* word) { wake_all(word); }
  // Other threads may run here. Called in checked builds only.
  virtual void interleave() {}
  // The running process has opened, or closes, a descriptor that is its own (ParentsDescriptors).
  virtual void note_descriptor(int, bool) {}
};
// nullptr except in simulations. Set before any thread of the engine runs.
extern WaitHooks* wait_hooks;

// Returns when the word is not `while_value`, or after a wake, the timeout or an interruption:
// callers must check the word again.
void wait(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns);
void wake_all(std::atomic<uint32_t>* word);
void wake(std::atomic<uint32_t>* word, uint32_t most);
// The same for words in memory that several processes map: threads of all of them.
void wait_between_processes(std::atomic<uint32_t>* word, uint32_t while_value, uint64_t timeout_ns);
void wake_between_processes(std::atomic<uint32_t>* word);
void yield();
// Sleeps for a fixed time, where no event says when to go on.
void pause(uint64_t ns);
uint64_t now_ns();
// In a simulation others may run here. Nothing in builds that are not checked.
inline void interleave() {
#ifdef OUTCORE_CHECKED
  if (wait_hooks != nullptr) wait_hooks->interleave();
#endif
}
// For a thread whose waiting call (poll, say) failed with `error`: where the kernel refuses the
// call, as the filter of a sandbox can have it, the thread must look from time to time instead, and
// pauses here; otherwise it asks again at once.
void pause_where_refused(int error);

// Where a process may make few calls from now on (a sandbox), what works for it in the background
// rests: while tell_to_rest(true) holds, threads that have called rest_when_told() do not come back
// from a wait of this file, nor from rest_if_told(), which threads call that wait otherwise. They
// ask the kernel for nothing but futexes then.
void rest_when_told();
void rest_if_told();
void tell_to_rest(bool is_told);

// Lock: a mutex whose holder cannot be interrupted by a signal handler that needs it. The caller
// has blocked signals (SignalBlock), or is inside the fault handler, which runs with all signals
// blocked.
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
  std::atomic<uint32_t> word_{0};  // 0: free; 1: locked; 2: locked, and a thread may be waiting
};

// SignalBlock: while it exists, no asynchronous signal reaches this thread. Ordinary code that
// calls the engine has one, because a signal handler of the program that touches managed memory
// must not interrupt its own thread in the middle of a fill.
class SignalBlock {
 public:
  SignalBlock();
  ~SignalBlock();
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  alignas(8) unsigned char saved_[128];
};

// SignalScope: a SignalBlock within which further ones of the thread cost nothing: each is two
// system calls otherwise, and what a program calls may take a dozen. REQUIRES: it ends in its
// thread, after all that were made within it; meanwhile nobody changes the thread's mask, but for a
// moment and back.
class SignalScope {
 public:
  SignalScope();
  ~SignalScope();
  SignalScope(const SignalScope&) = delete;
  SignalScope& operator=(const SignalScope&) = delete;

 private:
  const SignalBlock block_;
};

// Locks for the length of a scope. REQUIRES: as Lock.
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
