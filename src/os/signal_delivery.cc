#include "os/signal_delivery.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "os/process_lock.h"

#ifndef __x86_64__
#error "the write bit of a fault is read from x86-64 registers: port signal_delivery.cc first"
#endif

namespace outcore::os {
namespace {

struct Handler {
  int signal;
  FaultFunction on_fault = nullptr;
  ReasonFunction reason = nullptr;
  struct sigaction before {};
  bool is_installed = false;
};

Handler bus{SIGBUS};
Handler segv{SIGSEGV};
ProcessLock installing;

// `must_raise`: the touch will not come again with this signal.
void pass_on(Handler& handler, siginfo_t* info, void* context, const char* why, bool must_raise) {
  const struct sigaction& before = handler.before;
  if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(handler.signal, info, context);
    return;
  }
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(handler.signal);
    return;
  }
  if (why != nullptr) {
    ssize_t ignored = ::write(STDERR_FILENO, why, std::strlen(why));
    ignored = ::write(STDERR_FILENO, "\n", 1);
    static_cast<void>(ignored);
  }
  // A fault cannot be ignored: the default disposition ends the process, when the touch comes
  // again.
  struct sigaction fresh {};
  fresh.sa_handler = SIG_DFL;
  ::sigaction(handler.signal, &fresh, nullptr);
  if (must_raise) ::raise(handler.signal);
}

void on_signal(Handler& handler, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  FaultOutcome outcome = FaultOutcome::kNotOurs;
  if (info->si_code > 0) {  // by the kernel
    constexpr long kWriteBit = 2;
    const bool is_write =
        (static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWriteBit) != 0;
    outcome = handler.on_fault(static_cast<std::byte*>(info->si_addr), is_write);
  }
  if (outcome == FaultOutcome::kFailed) {
    // However the fault came (SIGSEGV, poison), a failed fill is a bus error at the address, as
    // with mmap.
    info->si_signo = SIGBUS;
    info->si_code = BUS_ADRERR;
    pass_on(bus, info, context, bus.reason(), true);
  } else if (outcome == FaultOutcome::kNotOurs) {
    pass_on(handler, info, context, nullptr, info->si_code <= 0);
  }
  errno = saved_errno;
}

void on_bus(int, siginfo_t* info, void* context) { on_signal(bus, info, context); }
void on_segv(int, siginfo_t* info, void* context) { on_signal(segv, info, context); }

void install(Handler& handler, FaultFunction on_fault, ReasonFunction reason,
             void (*entry)(int, siginfo_t*, void*)) {
  const SignalBlock block;
  const Locked locked(installing);
  if (handler.is_installed) return;
  handler.on_fault = on_fault;
  handler.reason = reason;
  struct sigaction action {};
  action.sa_sigaction = entry;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigfillset(&action.sa_mask);
  for (int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP}) sigdelset(&action.sa_mask, signal);
  ::sigaction(handler.signal, &action, &handler.before);
  handler.is_installed = true;
}

}  // namespace

void install_bus_handler(FaultFunction on_fault, ReasonFunction reason) {
  install(bus, on_fault, reason, on_bus);
}

void install_segv_handler(FaultFunction on_fault, ReasonFunction reason) {
  install(segv, on_fault, reason, on_segv);
}

bool is_segv_handler_replaced() {
  struct sigaction now {};
  ::sigaction(SIGSEGV, nullptr, &now);
  return segv.is_installed && now.sa_sigaction != on_segv;
}

}  // namespace outcore::os
