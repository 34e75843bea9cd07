// DeadlySignals: signals that end the process by default. With mmap what was written survives them;
// so once a writable mapping is taken we catch those that the program leaves at their default,
// store, and let the default happen. SIGKILL cannot be caught.
#pragma once

#include <signal.h>

namespace outcore::preload {

class DeadlySignals {
 public:
  // Catches what the program leaves at its default. Under the door's lock.
  static void take_over();
  // The program's sigaction() of a signal that we may have caught: true if this answered it.
  static bool answer(int signal, const struct sigaction* now, struct sigaction* before);
};

}  // namespace outcore::preload
