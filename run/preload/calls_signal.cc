// Handlers and masks of signals. Our handlers for SIGBUS and SIGSEGV stay, and these signals are
// never blocked; the program sees the handlers and masks that it has set. See calls.h.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>

#include <atomic>
#include <cerrno>
#include <iterator>

#include "core/os/signal_delivery.h"
#include "run/preload/alt_stack.h"
#include "run/preload/calls.h"
#include "run/preload/deadly_signals.h"
#include "run/preload/window.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

constexpr int kFaultsMax = std::size(kFaultSignals);
// The last one, SIGSYS, counts only where there may be a window.
int fault_count() { return Window::is_offered() ? kFaultsMax : 2; }

// Signals that interrupt system calls, as the program asked by siginterrupt(): a bit for each
// number.
constinit std::atomic<uint64_t> interrupting{0};

// Which of the fault signals the program thinks to have blocked in this thread.
constinit thread_local bool is_thought_blocked[kFaultsMax] = {};

// The mask without the fault signals.
const sigset_t* without_faults(const sigset_t* mask, sigset_t* copy) {
  if (mask == nullptr) return nullptr;
  *copy = *mask;
  for (int i = 0; i < fault_count(); ++i) sigdelset(copy, kFaultSignals[i]);
  return copy;
}

template <typename Call>
int set_mask(int how, const sigset_t* now, sigset_t* before, const Call& call) {
  sigset_t copy;
  const bool was[] = {is_thought_blocked[0], is_thought_blocked[1], is_thought_blocked[2]};
  const int result = call(how, without_faults(now, &copy), before);
  if (result != 0) return result;
  for (int i = 0; i < fault_count(); ++i) {
    if (now != nullptr) {
      const bool is_named = sigismember(now, kFaultSignals[i]) == 1;
      bool is = was[i];
      if (how == SIG_SETMASK) is = is_named;
      if (how == SIG_BLOCK && is_named) is = true;
      if (how == SIG_UNBLOCK && is_named) is = false;
      // A child of vfork has the parent's thread-local memory, and a mask of its own.
      if (is != was[i] && !is_borrowing()) is_thought_blocked[i] = is;
    }
    if (before != nullptr && was[i]) sigaddset(before, kFaultSignals[i]);
  }
  return 0;
}

}  // namespace

namespace outcore::preload {

void let_faults_come() {
  sigset_t faults;
  sigemptyset(&faults);
  for (const int fault : kFaultSignals) sigaddset(&faults, fault);
  real().pthread_sigmask(SIG_UNBLOCK, &faults, nullptr);
}

void note_interrupting(int signal, bool is_interrupting) {
  if (signal <= 0 || signal >= 64) return;
  const uint64_t bit = uint64_t{1} << signal;
  if (is_interrupting)
    interrupting.fetch_or(bit);
  else
    interrupting.fetch_and(~bit);
}

bool thinks_blocked(int signal) {
  for (int i = 0; i < kFaultsMax; ++i)
    if (kFaultSignals[i] == signal) return is_thought_blocked[i];
  return false;
}

}  // namespace outcore::preload

OUTCORE_EXPORT int sigprocmask(int how, const sigset_t* now, sigset_t* before) noexcept {
  if (is_inside()) return real().sigprocmask(how, now, before);
  return set_mask(how, now, before, real().sigprocmask);
}

OUTCORE_EXPORT int pthread_sigmask(int how, const sigset_t* now, sigset_t* before) noexcept {
  if (is_inside()) return real().pthread_sigmask(how, now, before);
  return set_mask(how, now, before, real().pthread_sigmask);
}

OUTCORE_EXPORT int sigaltstack(const stack_t* now, stack_t* before) noexcept {
  const bool is_plain = is_inside() || Door::instance().is_of_another_process();
  return is_plain ? real().sigaltstack(now, before) : AltStack::exchange(now, before);
}

OUTCORE_EXPORT int sigsuspend(const sigset_t* mask) {
  sigset_t copy;
  return real().sigsuspend(without_faults(mask, &copy));
}

OUTCORE_EXPORT int ppoll(pollfd* list, nfds_t count, const timespec* time, const sigset_t* mask) {
  sigset_t copy;
  return real().ppoll(list, count, time, without_faults(mask, &copy));
}

OUTCORE_EXPORT int pselect(int count, fd_set* in, fd_set* out, fd_set* other, const timespec* time,
                           const sigset_t* mask) {
  sigset_t copy;
  return real().pselect(count, in, out, other, time, without_faults(mask, &copy));
}

OUTCORE_EXPORT int epoll_pwait(int epoll, epoll_event* events, int count, int time,
                               const sigset_t* mask) {
  sigset_t copy;
  return real().epoll_pwait(epoll, events, count, time, without_faults(mask, &copy));
}

OUTCORE_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int count, const timespec* time,
                                const sigset_t* mask) {
  sigset_t copy;
  return real().epoll_pwait2(epoll, events, count, time, without_faults(mask, &copy));
}

namespace {

// A child of vfork has handlers of its own, but what we know about handlers is its parent's, and is
// not changed. For the fault signals it keeps our handlers until it becomes another program.
int set_childs_action(int signal, const struct sigaction* now, struct sigaction* before) {
  if ((signal == SIGBUS || signal == SIGSEGV) &&
      outcore::os::exchange_program_action(signal, nullptr, before))
    return 0;
  if (signal == SIGSYS && Window::exchange_program_action(nullptr, before)) return 0;
  int told = -1;
  const bool is_told = DeadlySignals::exchange(signal, nullptr, before, &told) && told == 0;
  return real().sigaction(signal, now, is_told ? nullptr : before);
}

}  // namespace

OUTCORE_EXPORT int sigaction(int signal, const struct sigaction* now,
                             struct sigaction* before) noexcept {
  if (is_inside()) return real().sigaction(signal, now, before);
  if (now != nullptr && is_borrowing()) return set_childs_action(signal, now, before);
  if ((signal == SIGBUS || signal == SIGSEGV) &&
      outcore::os::exchange_program_action(signal, now, before))
    return 0;
  if (signal == SIGSYS && Window::exchange_program_action(now, before)) return 0;
  struct sigaction copy;
  if (now != nullptr) {
    copy = *now;
    without_faults(&now->sa_mask, &copy.sa_mask);
    now = &copy;
  }
  if (int result = 0; DeadlySignals::exchange(signal, now, before, &result)) return result;
  return real().sigaction(signal, now, before);
}

OUTCORE_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (is_inside()) return real().signal(number, handler);
  if (handler == SIG_ERR) return errno = EINVAL, SIG_ERR;
  struct sigaction now {
  }, before{};
  now.sa_handler = handler;
  const bool is_interrupting =
      number > 0 && number < 64 && (interrupting.load() >> number & 1) != 0;
  now.sa_flags = is_interrupting ? 0 : SA_RESTART;
  sigemptyset(&now.sa_mask);
  if (sigaction(number, &now, &before) != 0) return SIG_ERR;
  return before.sa_handler;
}
OUTCORE_ALIAS(sighandler_t, bsd_signal, (int, sighandler_t) noexcept, signal);
