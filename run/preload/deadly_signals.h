// DeadlySignals: signals that end a program by default. What was written through an mmap survives
// them. So once a file is taken, this library catches those whose default the program has left,
// stores what was written (last_store.h), and then lets the default happen. SIGBUS and SIGSEGV are
// handled by os/signal_delivery; SIGKILL and SIGSTOP cannot be caught.
#pragma once

#include <signal.h>

#include <optional>

#include "core/os/wait.h"

namespace outcore::preload {

class DeadlySignals {
 public:
  // Catches the signals that the program leaves at their default, now and later. Under the door's
  // lock.
  static void take_over();
  // Answers the program's sigaction(), if it is for one of these signals: `result` is 0, or -1 with
  // errno. False: it is for another one, and the caller goes on. Async-signal-safe.
  static bool exchange(int signal, const struct sigaction* now, struct sigaction* before,
                       int* result);

  // Exists while the program sends a signal to itself that may end it. What was written is stored
  // before, and the handler is the kernel's default meanwhile, so the call returns only if the
  // process lives on, because another thread waits for the signal (sigwait). Async-signal-safe.
  class Sending {
   public:
    // `has_no_other_taker`: no other thread could receive the signal. If its default ends the
    // process, that is then certain, so space on servers is freed before: the process ends within
    // the life of this object.
    explicit Sending(int signal, bool has_no_other_taker = false);
    ~Sending();
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

   private:
    int signal_ = 0;  // 0: the signal ends nothing
    // Exists until the end if that is certain, so that nobody sets a handler meanwhile.
    std::optional<os::SignalBlock> block_;
    std::optional<os::Locked> locked_;
  };
};

}  // namespace outcore::preload
