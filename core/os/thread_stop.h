// ThreadStop: the program's threads, stopped for some milliseconds by a signal.
//
// Each thread of /proc/self/task but the caller gets a real-time signal, whose handler waits until
// go_on(), or for two seconds. Best effort, and the caller must not rely on it: a thread that
// blocks the signal runs on, and so does one that is inside the kernel on its behalf. Threads
// inside Outcore block all signals: they end what they do, and stop when they return to the
// program. Between stop() and go_on() the caller allocates nothing and takes no lock that a
// program's thread could hold.
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
  // How many were stopped, after at most about wait_ns. REQUIRES: go_on() soon, by this thread;
  // signals are blocked. One stop at a time in a process: a second one waits.
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
  // Asked in an earlier stop, and the signal may be pending still: not asked twice.
  static constexpr uint32_t kDeafMax = 1024;
  int deaf_[kDeafMax] = {};
  uint32_t deaf_count_ = 0;
};

}  // namespace outcore::os
