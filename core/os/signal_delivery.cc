#include "core/os/signal_delivery.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/os/process_lock.h"
#include "core/os/program_action.h"
#include "core/os/wait.h"

#ifndef __x86_64__
#error "the write bit of a fault is read from x86-64 registers: port signal_delivery.cc first"
#endif

namespace outcore::os {
namespace {

struct Handler {
  int signal;
  FaultFunction on_fault = nullptr;
  ReasonFunction reason = nullptr;
  void (*entry)(int, siginfo_t*, void*) = nullptr;
  ProgramAction programs;
  bool is_installed = false;
};

Handler bus{SIGBUS};
Handler segv{SIGSEGV};
ProcessLock installing;
void (*last_words)() = nullptr;
bool (*is_thought_blocked)(int signal) = nullptr;

// A copy_or_fail() of this thread that is under way, and where it continues if a touch of it fails.
// No pointer to a frame: a handler may have jumped out of it, and the stack may be gone.
struct WayOut {
  sigjmp_buf* point = nullptr;
  uintptr_t frame = 0, into = 0, from = 0;
  size_t size_bytes = 0;
};
constinit thread_local WayOut way_out = {};

// Whether this fault is one of that very copy: not of a handler that has interrupted it, nor of
// anything after a handler has jumped out of it.
bool is_of_copy(const siginfo_t& info, const void* context) {
  constexpr uintptr_t kDepthMax = 16 << 10;  // of the copying function
  if (way_out.point == nullptr) return false;
  const auto sp =
      static_cast<uintptr_t>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  if (way_out.frame - sp >= kDepthMax) return false;
  if (info.si_code == SI_KERNEL) return true;  // no address that memory can have: it is not told
  const auto at = reinterpret_cast<uintptr_t>(info.si_addr);
  return at - way_out.into < way_out.size_bytes || at - way_out.from < way_out.size_bytes;
}

// `must_raise`: touching again would not raise this signal again.
void pass_on(Handler& handler, siginfo_t* info, void* context, const char* why, bool must_raise) {
  if (is_of_copy(*info, context)) ::siglongjmp(*way_out.point, 1);
  const bool is_blocked = is_thought_blocked != nullptr && is_thought_blocked(handler.signal);
  if (!is_blocked && handler.programs.call(handler.signal, info, context)) return;
  if (why != nullptr) {
    ssize_t ignored = ::write(STDERR_FILENO, why, std::strlen(why));
    ignored = ::write(STDERR_FILENO, "\n", 1);
    static_cast<void>(ignored);
  }
  if (last_words != nullptr) last_words();
  // A fault cannot be ignored: the default action ends the process when the touch is repeated.
  struct sigaction fresh {};
  fresh.sa_handler = SIG_DFL;
  ::sigaction(handler.signal, &fresh, nullptr);
  if (must_raise) ::raise(handler.signal);
}

constexpr const char* kTooSmall =
    "outcore: a fault cannot be answered in this thread: its stack for signal handlers "
    "(sigaltstack) is too small; give it 16 KiB, or map with delivery = messages";
thread_local bool has_small_stack = false;

// Whether the signal stack of this thread is too small.
bool is_short_of_stack(const void* context) {
  const stack_t& own = static_cast<const ucontext_t*>(context)->uc_stack;
  const auto low = reinterpret_cast<uintptr_t>(own.ss_sp);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here - low < own.ss_size && here - low < kHandlerRoomBytes;
}

struct Cancel {
  int state = 0, type = 0;
};

// Also sets the type: if a request is pending, glibc 2.36 ends a thread even though its state is
// "disabled".
Cancel forbid_cancel() {
  Cancel before;
  ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before.type);
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before.state);
  return before;
}

// If cancellation was requested meanwhile, a thread that can be cancelled anywhere ends here:
// unwinding begins in this handler, and continues with the signal mask that the thread had before.
void allow_cancel(const Cancel& before, void* context) {
  int ignored = 0;
  ::pthread_setcancelstate(before.state, &ignored);
  if (before.type == PTHREAD_CANCEL_DEFERRED) return;
  if (before.state == PTHREAD_CANCEL_ENABLE)
    ::pthread_sigmask(SIG_SETMASK, &static_cast<ucontext_t*>(context)->uc_sigmask, nullptr);
  ::pthread_setcanceltype(before.type, &ignored);
}

void on_signal(Handler& handler, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  FaultOutcome outcome = FaultOutcome::kNotOurs;
  if (info->si_code > 0) {  // sent by the kernel
    has_small_stack = is_short_of_stack(context);
    const Cancel cancel = forbid_cancel();
    OC_CHECK(handler.on_fault != nullptr);
    constexpr long kWriteBit = 2;
    const greg_t* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    outcome = handler.on_fault({static_cast<std::byte*>(info->si_addr),
                                (registers[REG_ERR] & kWriteBit) != 0,
                                static_cast<uint64_t>(registers[REG_RIP])});
    errno = saved_errno;
    allow_cancel(cancel, context);
  }
  if (outcome == FaultOutcome::kFailed) {
    // Whatever signal delivered the fault (SIGSEGV, poison), a failed fill is a bus error at the
    // address, as with mmap.
    info->si_signo = SIGBUS;
    info->si_code = BUS_ADRERR;
    pass_on(bus, info, context, has_small_stack ? kTooSmall : bus.reason(), true);
  } else if (outcome == FaultOutcome::kNotOurs) {
    pass_on(handler, info, context, nullptr, info->si_code <= 0);
  }
  errno = saved_errno;
}

void on_bus(int, siginfo_t* info, void* context) { on_signal(bus, info, context); }
void on_segv(int, siginfo_t* info, void* context) { on_signal(segv, info, context); }

// Installs our handler, on the alternate stack or not.
void put(const Handler& handler, int on_stack, struct sigaction* found) {
  struct sigaction action {};
  action.sa_sigaction = handler.entry;
  action.sa_flags = SA_SIGINFO | SA_RESTART | on_stack;
  sigfillset(&action.sa_mask);
  for (int signal : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS})
    sigdelset(&action.sa_mask, signal);
  ::sigaction(handler.signal, &action, found);
}

// The loader needs 3 KiB of stack when a function is called for the first time; without this, it
// could be the stack of a handler. None of these calls has an effect.
void look_up_calls() {
  const int saved_errno = errno;
  std::byte byte{}, other{};
  const size_t one = ::getpid() > 0 ? 1 : 0;  // of a size it knows the compiler calls nothing
  ssize_t ignored = ::write(-1, nullptr, 0);
  ignored += ::pread(-1, &byte, 0, 0) + ::pwrite(-1, &byte, 0, 0) + ::ioctl(-1, 0UL);
  ignored += ::mprotect(nullptr, 0, PROT_NONE) + ::madvise(nullptr, 0, MADV_NORMAL);
  ignored += ::fallocate(-1, 0, 0, 1) + ::syscall(SYS_getpid) + ::gettid() + ::raise(0);
  std::memset(&byte, 0, one);
  std::memcpy(&other, &byte, one);
  std::memmove(&other, &byte, one);
  ignored += std::memcmp(&other, &byte, one);
  yield();
  ignored += now_ns() == 0 ? 1 : 0;
  int type = 0;
  ignored += ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
  ignored += ::pthread_setcanceltype(type, &type);
  static_cast<void>(ignored);
  errno = saved_errno;
}

void install(Handler& handler, FaultFunction on_fault, ReasonFunction reason,
             void (*entry)(int, siginfo_t*, void*)) {
  OC_CHECK(on_fault != nullptr);
  OC_CHECK(reason != nullptr);
  const SignalBlock block;
  const Locked locked(installing);
  if (handler.is_installed) return;
  handler.on_fault = on_fault;
  handler.reason = reason;
  handler.entry = entry;
  struct sigaction found {};
  put(handler, SA_ONSTACK, &found);
  handler.programs.set(found);
  handler.is_installed = true;
  look_up_calls();
}

}  // namespace

void install_bus_handler(FaultFunction on_fault, ReasonFunction reason) {
  install(bus, on_fault, reason, on_bus);
}

void install_segv_handler(FaultFunction on_fault, ReasonFunction reason) {
  install(segv, on_fault, reason, on_segv);
}

bool exchange_program_action(int signal, const struct sigaction* now, struct sigaction* before) {
  OC_CHECK(signal == SIGBUS || signal == SIGSEGV);
  Handler& handler = signal == SIGBUS ? bus : segv;
  const SignalBlock block;
  const Locked locked(installing);
  if (!handler.is_installed) return false;
  if (before != nullptr) *before = handler.programs.get();
  if (now == nullptr) return true;
  handler.programs.set(*now);
  // If the program wants its handler on the thread's own stack, ours runs there, too.
  const bool is_default = (now->sa_flags & SA_SIGINFO) == 0 &&
                          (now->sa_handler == SIG_DFL || now->sa_handler == SIG_IGN);
  put(handler, is_default ? SA_ONSTACK : now->sa_flags & SA_ONSTACK, nullptr);
  return true;
}

bool is_handler_stack_too_small() { return has_small_stack; }

[[gnu::noinline]] bool copy_or_fail(void* into, const void* from, size_t size_bytes) {
  const WayOut before = way_out;  // of what a signal has interrupted
  sigjmp_buf point;
  if (sigsetjmp(point, 1) != 0) {
    way_out = before;
    return false;
  }
  way_out = {&point, reinterpret_cast<uintptr_t>(__builtin_frame_address(0)),
             reinterpret_cast<uintptr_t>(into), reinterpret_cast<uintptr_t>(from), size_bytes};
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(into, from, size_bytes);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  way_out = before;
  return true;
}

void set_block_query(bool (*query)(int signal)) { is_thought_blocked = query; }

void set_last_words(void (*f)()) { last_words = f; }

namespace {

bool is_replaced(const Handler& handler) {
  struct sigaction now {};
  ::sigaction(handler.signal, nullptr, &now);
  return handler.is_installed && now.sa_sigaction != handler.entry;
}

}  // namespace

bool is_segv_handler_replaced() { return is_replaced(segv); }
bool is_bus_handler_replaced() { return is_replaced(bus); }

}  // namespace outcore::os
