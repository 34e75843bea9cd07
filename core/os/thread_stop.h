// ThreadStop: stops the program's threads for some milliseconds, by a signal.
//
// Each thread in /proc/self/task, except the caller, gets a real-time signal, whose handler waits
// until go_on(), or for two seconds. This is best effort, and the caller must not rely on it: a
// thread that blocks the signal continues, and so does a system call in the kernel on its behalf.
// Threads inside Outcore block all signals; they finish, and stop before they return to the
// program. Between stop() and go_on() the caller must not allocate, nor take a lock that a thread
// of the program could hold.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/os/process_lock.h"

namespace outcore::os {

class ThreadStop {
 public:
  static constexpr uint32_t kThreadsMax = 16384;

  static ThreadStop& instance();
  // Stops the threads; returns how many, after at most about wait_ns. One stop at a time in a
  // process; a second one waits. REQUIRES: signals are blocked; this thread soon calls go_on().
  uint32_t stop(uint64_t wait_ns);
  void go_on();

 private:
  ThreadStop() = default;
  bool install();
  bool ask_new_ones();
  bool ask(int thread);
  bool have_all_answered();
  bool is_blocked(int thread, bool* is_pending) const;
  static void on_signal(int);
  static void wait_for_end();

  ProcessLock lock_;
  int signal_ = 0;
  std::atomic<uint32_t> epoch_{0};  // odd: a stop is in force
  std::atomic<uint32_t> answered_{0};
  uint32_t asked_ = 0;  // in this stop
  int thread_[kThreadsMax] = {};
  // Threads that got the signal in an earlier stop, where it may still be pending: they get no
  // second one.
  static constexpr uint32_t kDeafMax = 1024;
  int deaf_[kDeafMax] = {};
  uint32_t deaf_count_ = 0;
};

}  // namespace outcore::os
