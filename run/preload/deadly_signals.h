// DeadlySignals: signals that end a program by default. With mmap what was written survives them;
// so once a file is taken we catch those that the program leaves at their default, store (see
// last_store.h), and let the default happen. SIGBUS and SIGSEGV are os/signal_delivery's; SIGKILL
// and SIGSTOP cannot be caught.
#pragma once

#include <signal.h>

#include <optional>

#include "core/os/wait.h"

namespace outcore::preload {

class DeadlySignals {
 public:
  // Catches what the program leaves at its default, now and later. Under the door's lock.
  static void take_over();
  // The program's sigaction() of a signal that may be one of these. False: it is none of ours, and
  // the caller goes on. Otherwise 0 or -1 and errno in `result`. Async-signal-safe.
  static bool exchange(int signal, const struct sigaction* now, struct sigaction* before,
                       int* result);

  // While it lives the program sends a signal to itself. If that may end it: what was written is
  // stored before, and the default is the kernel's own, so that the call returns only if the
  // process goes on: because another thread waits for the signal (sigwait). Async-signal-safe.
  class Sending {
   public:
    // `has_no_other_taker`: no other thread could have the signal. If it ends the process by
    // default, then surely, and far space is given back before: the process ends with this object.
    explicit Sending(int signal, bool has_no_other_taker = false);
    ~Sending();
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

   private:
    int signal_ = 0;  // 0: it ends nothing
    // Held to the end where that is sure, so that nobody sets a handler meanwhile.
    std::optional<os::SignalBlock> block_;
    std::optional<os::Locked> locked_;
  };
};

}  // namespace outcore::preload
