#include "preload/deadly_signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "preload/door.h"
#include "preload/real.h"

namespace outcore::preload {
namespace {

constexpr int kDeadly[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,   SIGFPE,
                           SIGUSR1, SIGUSR2,   SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU,
                           SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSYS};

std::atomic<uint64_t> caught{0};  // a bit a signal

uint64_t bit_of(int signal) { return uint64_t{1} << signal; }

void on_deadly(int signal) {
  const int saved_errno = errno;
  Door::instance().store_all();
  // Ends the process when this handler returns, as the signal is blocked until then.
  struct sigaction fresh {};
  fresh.sa_handler = SIG_DFL;
  real().sigaction(signal, &fresh, nullptr);
  ::raise(signal);
  errno = saved_errno;
}

}  // namespace

void DeadlySignals::take_over() {
  for (const int signal : kDeadly) {
    struct sigaction now {};
    if ((caught.load() & bit_of(signal)) != 0) continue;
    if (real().sigaction(signal, nullptr, &now) != 0) continue;
    if ((now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL) continue;
    struct sigaction ours {};
    ours.sa_handler = on_deadly;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigfillset(&ours.sa_mask);
    for (const int fault : {SIGBUS, SIGSEGV}) sigdelset(&ours.sa_mask, fault);
    caught.fetch_or(bit_of(signal));
    real().sigaction(signal, &ours, nullptr);
  }
}

bool DeadlySignals::answer(int signal, const struct sigaction* now, struct sigaction* before) {
  if (signal <= 0 || signal >= 64 || (caught.load() & bit_of(signal)) == 0) return false;
  if (before != nullptr) {
    *before = {};
    before->sa_handler = SIG_DFL;
  }
  const bool stays =
      now == nullptr || ((now->sa_flags & SA_SIGINFO) == 0 && now->sa_handler == SIG_DFL);
  if (stays) return true;
  caught.fetch_and(~bit_of(signal));
  return real().sigaction(signal, now, nullptr) == 0;
}

}  // namespace outcore::preload
