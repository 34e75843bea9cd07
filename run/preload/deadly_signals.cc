#include "run/preload/deadly_signals.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/os/process_lock.h"
#include "run/preload/door.h"
#include "run/preload/heap.h"
#include "run/preload/last_store.h"
#include "run/preload/real.h"
#include "run/preload/window.h"

namespace outcore::preload {
namespace {

constexpr int kDeadly[] = {SIGHUP,  SIGINT,    SIGQUIT, SIGILL,  SIGTRAP, SIGABRT,   SIGFPE,
                           SIGUSR1, SIGUSR2,   SIGPIPE, SIGALRM, SIGTERM, SIGSTKFLT, SIGXCPU,
                           SIGXFSZ, SIGVTALRM, SIGPROF, SIGIO,   SIGPWR,  SIGSYS};

constexpr int kSignalsMax = 65;

// Where a bit is set, the kernel has a handler of ours for the signal: instead of the default
// (`caught`), or of a handler of the program that is to run once and leave the default behind.
constinit std::atomic<uint64_t> caught{0}, once{0};
constinit std::atomic<bool> is_active{false};
os::ProcessLock changing;  // guards all of this; locked with signals blocked
struct sigaction programs_once[kSignalsMax];

uint64_t bit_of(int signal) { return uint64_t{1} << (signal - 1); }

bool is_deadly(int signal) {
  // The highest signals are left for the cut (os/thread_stop) and for leases (listener.cc).
  if (signal >= SIGRTMIN && signal < SIGRTMAX - 8) return true;
  for (const int deadly : kDeadly)
    if (deadly == signal) return true;
  return false;
}

bool is_default(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

// Lets the default of the signal happen now, in this thread.
void end_by(int signal) {
  struct sigaction fresh {};
  fresh.sa_handler = SIG_DFL;
  real().sigaction(signal, &fresh, nullptr);
  ::syscall(SYS_tgkill, ::getpid(), ::gettid(), signal);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  real().pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
}

void on_deadly(int signal, siginfo_t*, void*) {
  const int saved_errno = errno;
  LastStore::run(LastStore::What::kStoreAndRetire);
  end_by(signal);
  errno = saved_errno;
}

void put_ours(int signal) {
  struct sigaction ours {};
  ours.sa_sigaction = on_deadly;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  for (const int fault : {SIGBUS, SIGSEGV, SIGSYS}) sigdelset(&ours.sa_mask, fault);
  if (real().sigaction(signal, &ours, nullptr) == 0) caught.fetch_or(bit_of(signal));
}

// With SA_RESETHAND the default is in force before the handler begins, so ours is put there first.
void on_once(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  struct sigaction action {};
  {
    const os::SignalBlock block;
    const os::Locked locked(changing);
    action = programs_once[signal];
    once.fetch_and(~bit_of(signal));
    put_ours(signal);
  }
  errno = saved_errno;
  if ((action.sa_flags & SA_SIGINFO) != 0)
    action.sa_sigaction(signal, info, context);
  else if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN)
    action.sa_handler(signal);
}

// Finds what the program has set for the signal, as it sees it. 0, or -1 and errno.
int look_up(int signal, struct sigaction* found) {
  *found = {};
  if ((caught.load() & bit_of(signal)) != 0) return 0;
  if ((once.load() & bit_of(signal)) == 0) return real().sigaction(signal, nullptr, found);
  *found = programs_once[signal];
  return 0;
}

int put_once(int signal, const struct sigaction& now) {
  programs_once[signal] = now;
  struct sigaction ours = now;
  ours.sa_sigaction = on_once;
  ours.sa_flags = (now.sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
  const int result = real().sigaction(signal, &ours, nullptr);
  if (result == 0) once.fetch_or(bit_of(signal));
  return result;
}

// REQUIRES: `changing` is locked.
int set(int signal, const struct sigaction& now) {
  if (is_default(now)) {
    if ((caught.load() & bit_of(signal)) == 0) put_ours(signal);
    once.fetch_and(~bit_of(signal));
    return (caught.load() & bit_of(signal)) != 0 ? 0 : -1;
  }
  caught.fetch_and(~bit_of(signal));
  once.fetch_and(~bit_of(signal));
  const bool is_ignored = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_IGN;
  const bool is_once = (now.sa_flags & static_cast<int>(SA_RESETHAND)) != 0 && !is_ignored;
  return is_once ? put_once(signal, now) : real().sigaction(signal, &now, nullptr);
}

}  // namespace

void DeadlySignals::take_over() {
  if (is_active.exchange(true)) return;
  const os::SignalBlock block;
  const os::Locked locked(changing);
  for (int signal = 1; signal < kSignalsMax; ++signal) {
    struct sigaction now {};
    if (!is_deadly(signal) || real().sigaction(signal, nullptr, &now) != 0) continue;
    const bool is_once = (now.sa_flags & static_cast<int>(SA_RESETHAND)) != 0;
    if (is_default(now) || is_once) static_cast<void>(set(signal, now));
  }
}

bool DeadlySignals::exchange(int signal, const struct sigaction* now, struct sigaction* before,
                             int* result) {
  if (!is_active.load(std::memory_order_acquire) || signal <= 0 || signal >= kSignalsMax ||
      !is_deadly(signal))
    return false;
  const os::SignalBlock block;
  const os::Locked locked(changing);
  struct sigaction found {};
  *result = look_up(signal, &found);
  if (*result == 0 && now != nullptr) *result = set(signal, *now);
  if (*result == 0 && before != nullptr) *before = found;
  return true;
}

namespace {

// Whether the process has the signal, and no thread has it yet. sigpending() does not say that: it
// reports blocked signals only.
bool is_pending(int signal) {
  constexpr char kName[] = "\nShdPnd:\t";
  char text[4096];
  const int file = real().open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t bytes = real().read(file, text, sizeof text - 1);
  real().close(file);
  text[bytes < 0 ? 0 : bytes] = 0;
  const char* const line = std::strstr(text, kName);
  if (line == nullptr) return false;
  return (std::strtoull(line + sizeof kName - 1, nullptr, 16) & bit_of(signal)) != 0;
}

}  // namespace

// Everything is stored before the signal is sent: our handler would run in whichever thread the
// kernel chooses, and the sender would go on meanwhile.
DeadlySignals::Sending::Sending(int signal, bool has_no_other_taker) {
  if (!is_active.load(std::memory_order_acquire) || signal <= 0 || signal >= kSignalsMax ||
      (caught.load() & bit_of(signal)) == 0 || is_inside() ||
      (signal == SIGSYS && Window::is_ready()) ||  // its handler must stay
      Door::instance().is_of_another_process())
    return;
  // If this thread blocks the signal, it stays pending until it is unblocked, or another thread
  // gets it: usually one that waits for it.
  sigset_t blocked;
  sigemptyset(&blocked);
  real().pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  if (sigismember(&blocked, signal) != 0) return;
  const int saved_errno = errno;
  LastStore::run(LastStore::What::kStore);
  struct sigaction fresh {};
  fresh.sa_handler = SIG_DFL;
  const auto make_default = [&] {
    return (caught.load() & bit_of(signal)) != 0 && real().sigaction(signal, &fresh, nullptr) == 0;
  };
  block_.emplace();
  locked_.emplace(changing);
  if (make_default()) signal_ = signal;
  locked_.reset();
  if (signal_ != 0 && has_no_other_taker && Heap::is_used()) {
    // Not under `changing`: the thread that stores needs the door's lock, and a thread that forks
    // has locked that one while it waits for ours. From here on the signal ends the process, even
    // if another thread has made it caught again.
    LastStore::run(LastStore::What::kStoreAndRetire);
    locked_.emplace(changing);
    real().sigaction(signal, &fresh, nullptr);
  } else {
    block_.reset();
  }
  errno = saved_errno;
}

DeadlySignals::Sending::~Sending() {
  if (signal_ == 0) return;
  const int saved_errno = errno;
  if (locked_.has_value()) {  // only a debugger lets the call return
    end_by(signal_);
    locked_.reset();
    block_.reset();
  }
  // The process goes on, so the thread that waits for the signal is about to get it. Until then it
  // is pending, and a change of this thread's mask could deliver it here.
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  const uint64_t begin_ns = os::now_ns();
  while (is_pending(signal_) && os::now_ns() - begin_ns < kPatienceNs) os::yield();
  LastStore::resume();
  const os::SignalBlock block;
  const os::Locked locked(changing);
  if ((caught.load() & bit_of(signal_)) != 0) put_ours(signal_);
  errno = saved_errno;
}

}  // namespace outcore::preload
