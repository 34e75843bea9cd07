// ProgramAction: the program's own sigaction for a signal that Outcore handles. Outcore's handler
// reads it, and calls the program's handler if the signal is not Outcore's.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace outcore::os {

class ProgramAction {
 public:
  // Async-signal-safe.
  struct sigaction get() const;
  // One caller at a time, and with it no more than kActions - 1 calls while a get() is under way.
  void set(const struct sigaction& action);
  // Whether the action is a function, and neither SIG_DFL nor SIG_IGN.
  static bool is_handler(const struct sigaction& action);
  // Calls the program's handler with the mask that it would have without us, except that faults and
  // trapped system calls (SIGBUS, SIGSEGV, SIGSYS) are never blocked: it may touch memory of ours.
  // `context`: of our handler. False: the program has no handler, and nothing was done.
  // Async-signal-safe.
  bool call(int signal, siginfo_t* info, void* context);

 private:
  // The last of several entries counts, so that a handler can read one while the next is written.
  static constexpr uint32_t kActions = 16;
  struct sigaction action_[kActions] = {};
  std::atomic<uint32_t> latest_{0};
};

}  // namespace outcore::os
