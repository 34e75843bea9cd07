// Handlers and masks of signals by functions of System V and BSD, and masks of contexts: what
// calls_signal.cc does for those of POSIX. How a program is compiled decides which it calls: under
// -std=c11 with _XOPEN_SOURCE, signal() is __sysv_signal(). See calls.h.
#include <poll.h>
#include <signal.h>
#include <ucontext.h>

#include <atomic>

#include "run/preload/as_program.h"
#include "run/preload/calls.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

sighandler_t set_handler(int number, sighandler_t handler, int flags) {
  if (handler == SIG_ERR) return errno = EINVAL, SIG_ERR;
  struct sigaction now {
  }, before{};
  now.sa_handler = handler;
  now.sa_flags = flags;
  sigemptyset(&now.sa_mask);
  if (as_program::sigaction(number, &now, &before) != 0) return SIG_ERR;
  return before.sa_handler;
}

int change_one(int how, int number) {
  sigset_t set;
  sigemptyset(&set);
  return sigaddset(&set, number) != 0 ? -1 : sigprocmask(how, &set, nullptr);
}

// A mask of BSD has a bit for each of the first 32 signals.
int change_mask(int how, int mask) {
  sigset_t now, before;
  sigemptyset(&now);
  sigemptyset(&before);
  for (int number = 1; number <= 32; ++number)
    if ((static_cast<unsigned>(mask) >> (number - 1) & 1) != 0) sigaddset(&now, number);
  if (sigprocmask(how, &now, &before) != 0) return -1;
  unsigned old = 0;
  for (int number = 1; number <= 32; ++number)
    if (sigismember(&before, number) == 1) old |= 1U << (number - 1);
  return static_cast<int>(old);
}

// A context is entered by one system call that also sets its mask. That call is not one of the
// functions for masks that we take over, so the fault signals are removed from the mask before.
void let_faults_pass(const ucontext_t* context) {
  auto* const mask = const_cast<sigset_t*>(&context->uc_sigmask);
  for (const int fault : kFaultSignals)
    if (sigismember(mask, fault) == 1) sigdelset(mask, fault);
}

}  // namespace

OUTCORE_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return set_handler(number, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}
OUTCORE_ALIAS(sighandler_t, sysv_signal, (int, sighandler_t) noexcept, __sysv_signal);

OUTCORE_EXPORT sighandler_t ssignal(int number, sighandler_t handler) noexcept {
  return signal(number, handler);
}

// The C library would note this for its own signal(); ours needs a note of its own.
OUTCORE_EXPORT int siginterrupt(int number, int is_interrupted) noexcept {
  struct sigaction now {};
  if (as_program::sigaction(number, nullptr, &now) != 0) return -1;
  now.sa_flags = is_interrupted != 0 ? now.sa_flags & ~SA_RESTART : now.sa_flags | SA_RESTART;
  note_interrupting(number, is_interrupted != 0);
  return as_program::sigaction(number, &now, nullptr);
}

OUTCORE_EXPORT int __sigaction(int number, const struct sigaction* now,
                               struct sigaction* before) noexcept {
  return as_program::sigaction(number, now, before);
}

OUTCORE_EXPORT int sigblock(int mask) noexcept { return change_mask(SIG_BLOCK, mask); }
OUTCORE_EXPORT int sigsetmask(int mask) noexcept { return change_mask(SIG_SETMASK, mask); }

OUTCORE_EXPORT int sighold(int number) noexcept { return change_one(SIG_BLOCK, number); }
OUTCORE_EXPORT int sigrelse(int number) noexcept { return change_one(SIG_UNBLOCK, number); }
OUTCORE_EXPORT int sigignore(int number) noexcept {
  return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

OUTCORE_EXPORT sighandler_t sigset(int number, sighandler_t handler) noexcept {
  sigset_t before;
  if (sigemptyset(&before); sigprocmask(SIG_BLOCK, nullptr, &before) != 0) return SIG_ERR;
  const bool was_held = sigismember(&before, number) == 1;
  if (handler == SIG_HOLD) {
    struct sigaction found {};
    if (as_program::sigaction(number, nullptr, &found) != 0) return SIG_ERR;
    change_one(SIG_BLOCK, number);
    return was_held ? SIG_HOLD : found.sa_handler;
  }
  const sighandler_t old = set_handler(number, handler, 0);
  if (old == SIG_ERR) return SIG_ERR;
  change_one(SIG_UNBLOCK, number);
  return was_held ? SIG_HOLD : old;
}

OUTCORE_EXPORT int setcontext(const ucontext_t* context) noexcept {
  let_faults_pass(context);
  return real().setcontext(context);
}

// swapcontext() saves the place that it was called from, which may be returned to several times. So
// that place must be in the program, and not in a frame of ours.
extern "C" {
[[gnu::used,
  gnu::visibility("hidden")]] constinit std::atomic<int (*)(ucontext_t*, const ucontext_t*)>
    outcore_real_swapcontext{nullptr};
[[gnu::used, gnu::visibility("hidden")]] void outcore_enter_context(const ucontext_t* context) {
  outcore_real_swapcontext.store(real().swapcontext, std::memory_order_relaxed);
  let_faults_pass(context);
}
}
asm(R"(
  .text
  .globl swapcontext
  .type swapcontext, @function
swapcontext:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movq %rsi, %rdi
  call outcore_enter_context
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmpq *outcore_real_swapcontext(%rip)
  .cfi_endproc
  .size swapcontext, .-swapcontext
)");

OUTCORE_EXPORT int __ppoll_chk(pollfd* list, nfds_t count, const timespec* time,
                               const sigset_t* mask, size_t) {
  return ppoll(list, count, time, mask);
}
