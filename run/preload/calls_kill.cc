// Signals that the program sends to itself: see DeadlySignals::Sending, and calls.h.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "run/preload/calls.h"
#include "run/preload/deadly_signals.h"
#include "run/preload/program_threads.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room
using Sending = DeadlySignals::Sending;

namespace {

// Whether `whom`, as in kill(), is this process or its group. kill(-1) spares the process that
// calls it.
bool has_this_process(pid_t whom) {
  return whom == 0 || whom == ::getpid() || (whom < -1 && -whom == ::getpgrp());
}

}  // namespace

OUTCORE_EXPORT int kill(pid_t whom, int signal) noexcept {
  const Sending sending(has_this_process(whom) ? signal : 0, !has_program_threads());
  return real().kill(whom, signal);
}

OUTCORE_EXPORT int killpg(pid_t group, int signal) noexcept {
  const Sending sending(group == 0 || group == ::getpgrp() ? signal : 0, !has_program_threads());
  return real().killpg(group, signal);
}

OUTCORE_EXPORT int raise(int signal) noexcept {
  const Sending sending(signal, true);
  return real().raise(signal);
}
OUTCORE_ALIAS(int, gsignal, (int) noexcept, raise);

OUTCORE_EXPORT int tgkill(pid_t process, pid_t thread, int signal) noexcept {
  const Sending sending(thread == ::gettid() && process == ::getpid() ? signal : 0, true);
  return real().tgkill(process, thread, signal);
}

OUTCORE_EXPORT int pthread_kill(pthread_t thread, int signal) noexcept {
  const Sending sending(::pthread_equal(thread, ::pthread_self()) != 0 ? signal : 0, true);
  return real().pthread_kill(thread, signal);
}

OUTCORE_EXPORT int sigqueue(pid_t whom, int signal, const sigval value) noexcept {
  const Sending sending(whom == ::getpid() ? signal : 0);
  return real().sigqueue(whom, signal, value);
}

OUTCORE_EXPORT int pthread_sigqueue(pthread_t thread, int signal, const sigval value) noexcept {
  const Sending sending(::pthread_equal(thread, ::pthread_self()) != 0 ? signal : 0);
  return real().pthread_sigqueue(thread, signal, value);
}
