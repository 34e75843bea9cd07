// DeadlySignals: signals that end a program by default. With mmap what was written survives them;
// so once a file is taken we catch those that the program leaves at their default, store (see
// last_store.h), and let the default happen. SIGBUS and SIGSEGV are os/signal_delivery's; SIGKILL
// and SIGSTOP cannot be caught.
#pragma once

#include <signal.h>

namespace outcore::preload {

class DeadlySignals {
 public:
  // Catches what the program leaves at its default, now and later. Under the door's lock.
  static void take_over();
  // The program's sigaction() of a signal that may be one of these. False: it is none of ours, and
  // the caller goes on. Otherwise 0 or -1 and errno in `result`. Async-signal-safe.
  static bool exchange(int signal, const struct sigaction* now, struct sigaction* before,
                       int* result);
};

}  // namespace outcore::preload
