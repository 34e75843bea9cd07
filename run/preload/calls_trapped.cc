// System calls that point into the window and were made by another instruction than ours: raw ones,
// and those that the C library makes inside of itself. The kernel sends SIGSYS instead of making
// them; here they are carried out as the program meant them. See window.h, calls.h.
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "core/base/assert.h"
#include "core/os/process_lock.h"
#include "core/os/program_action.h"
#include "core/os/signal_delivery.h"
#include "run/preload/answered_calls.h"
#include "run/preload/calls.h"
#include "run/preload/last_store.h"
#include "run/preload/trapped_arguments.h"
#include "run/preload/window.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {

using outcore::os::ProgramAction;
using Words = long[CallShape::kArguments];

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSliceNs = kSecondNs / 10;
constexpr int kTouchesMax = 64;

// -- the program's own handler --

ProgramAction program_action;
outcore::os::ProcessLock changing;  // guards it; locked with signals blocked

// Ends the process by the default of SIGSYS; also if the program ignores the signal and another
// filter has trapped a call, which cannot be ignored.
void end_by_trap() {
  LastStore::run(LastStore::What::kStoreAndRetire);
  struct sigaction fresh {};
  fresh.sa_handler = SIG_DFL;
  real().sigaction(SIGSYS, &fresh, nullptr);
  ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGSYS);
}

// A SIGSYS that is not for us: another filter has trapped a call, or somebody has sent the signal.
void pass_on(int signal, siginfo_t* info, void* context) {
  const bool is_sent = info->si_code <= 0;
  if (is_sent && is_inside()) {  // it comes later, or to another thread
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal);
    real().pthread_sigmask(SIG_BLOCK, &only, nullptr);
    sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, signal);
    ::syscall(SYS_kill, ::getpid(), signal);
    return;
  }
  if (program_action.call(signal, info, context)) return;
  if (!is_sent || program_action.get().sa_handler != SIG_IGN) end_by_trap();
}

// -- a call within the same call --

// The call that this thread is carrying out. For it the C library may be called with arguments of
// the program, and that call is then trapped, too: it goes to the kernel as it is. `frame` shows
// whether a call is such a one: a program that has left the handler by a jump calls from above it.
struct Current {
  uintptr_t frame = 0;
  long number = -1;
  Words words = {};
};
constinit thread_local Current current;

bool is_repeated(long number, const Words& words, uintptr_t stack) {
  constexpr uintptr_t kDepthMax = 256 << 10;
  return number == current.number && current.frame - stack < kDepthMax &&
         std::equal(std::begin(words), std::end(words), std::begin(current.words));
}

class Carrying {
 public:
  Carrying(long number, const Words& words) : before_(current) {
    constexpr uintptr_t kThisFrame = 256;
    current.frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) + kThisFrame;
    current.number = number;
    std::copy(std::begin(words), std::end(words), current.words);
  }
  ~Carrying() { current = before_; }
  Carrying(const Carrying&) = delete;
  Carrying& operator=(const Carrying&) = delete;

 private:
  const Current before_;
};

// -- calls that may wait --

// The thread's cancellation type when the call was trapped. The C library lets a thread be
// cancelled anywhere within a call that waits; in our code around the call it must not be
// cancelled.
constinit thread_local int cancel_type = PTHREAD_CANCEL_DEFERRED;

long call_and_wait(long number, const Words& words) {
  if (cancel_type != PTHREAD_CANCEL_ASYNCHRONOUS) return Window::call(number, words);
  int ignored = 0;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &ignored);
  const long result = Window::call(number, words);
  ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &ignored);
  return result;
}

// -- futexes, which are known by their address, so they are not copied --

bool is_ours(long word) {
  const auto* p = reinterpret_cast<const void*>(word);
  return Window::covers(p, 1) && concerns(p, sizeof(uint32_t));
}

// Brings the page in, if only for a moment. `is_write`: as a write does, where the mapping allows
// it. False: the page cannot be read.
bool touch(long word, bool is_write) {
  if (!is_ours(word)) return true;
  auto* const p = reinterpret_cast<std::byte*>(word);
  uint32_t value = 0;
  if (!outcore::os::copy_or_fail(&value, p, sizeof value)) return false;
  if (!is_write) return true;
  bool is_writable = false;
  const auto look = [&] {
    Door::instance().for_each_part(p, sizeof value, [&](Mapping& m, uint64_t, uint64_t) {
      is_writable = (m.protection & PROT_WRITE) != 0;
    });
  };
  if (is_ready(look) && is_writable)
    __atomic_fetch_or(reinterpret_cast<uint32_t*>(p), 0U, __ATOMIC_SEQ_CST);
  return true;
}

long call_touched(long number, const Words& words, long other) {
  for (int tries = 0;; ++tries) {
    if (!touch(words[0], tries != 0) || (other != 0 && !touch(other, tries != 0))) return -EFAULT;
    const long result = call_and_wait(number, words);
    if (result != -EFAULT || tries == kTouchesMax) return result;
  }
}

bool is_one_of(int operation, std::initializer_list<int> all) {
  return std::find(all.begin(), all.end(), operation) != all.end();
}

int64_t now_of(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

constexpr int kLockPi2 = 13;       // Linux 5.14
constexpr long kFutexWaitV = 449;  // Linux 5.16

// When a time limit ends, by that clock; -1: there is no limit. nullopt: the limit is invalid.
std::optional<int64_t> end_of(const timespec* limit, bool is_relative, clockid_t clock) {
  if (limit == nullptr) return -1;
  if (limit->tv_sec < 0 || limit->tv_nsec < 0 || limit->tv_nsec >= kSecondNs) return std::nullopt;
  return std::min<int64_t>(limit->tv_sec, INT64_MAX / kSecondNs / 4) * kSecondNs + limit->tv_nsec +
         (is_relative ? now_of(clock) : 0);
}

// Calls `wait(until)` again and again, for a slice of time each, until it returns for another
// reason than the end of its slice, or the limit is reached. So the word is looked at every now and
// then: others may wake it by another name of the same word, once its file is the kernel's again,
// or its page is in another frame.
template <typename Wait>
long wait_in_slices(clockid_t clock, int64_t end_ns, const Wait& wait) {
  for (;;) {
    const int64_t slice_ns = now_of(clock) + kSliceNs;
    const bool is_last = end_ns >= 0 && end_ns <= slice_ns;
    const int64_t until_ns = is_last ? end_ns : slice_ns;
    const timespec until{until_ns / kSecondNs, until_ns % kSecondNs};
    const long result = wait(&until);
    if (result != -ETIMEDOUT || is_last) return result;
  }
}

// A wait without a limit goes on after a signal whose handler has SA_RESTART. The kernel's waits
// with a limit, as our slices have, do not go on, except for futex_waitv.
long wait_as_if_for_ever(const Words& given) {
  struct {
    uint64_t value, address;
    uint32_t flags, reserved;
  } one{static_cast<uint32_t>(given[2]), static_cast<uint64_t>(given[0]), 2, 0};  // of 32 bits
  return wait_in_slices(CLOCK_MONOTONIC, -1, [&](const timespec* until) {
    const Words words = {
        reinterpret_cast<long>(&one), 1, 0, reinterpret_cast<long>(until), CLOCK_MONOTONIC, 0};
    const long result = call_touched(kFutexWaitV, words, given[0]);
    return result > 0 ? 0 : result;
  });
}

// Makes the call in slices with absolute ends. `is_wall`: by CLOCK_REALTIME.
long call_in_slices(const Words& given, bool is_relative, bool is_wall, const timespec* limit) {
  const clockid_t clock = is_wall ? CLOCK_REALTIME : CLOCK_MONOTONIC;
  const std::optional<int64_t> end_ns = end_of(limit, is_relative, clock);
  if (!end_ns) return -EINVAL;
  Words words;
  std::copy(std::begin(given), std::end(given), words);
  if (is_relative) {
    words[1] = FUTEX_WAIT_BITSET;
    words[5] = static_cast<long>(FUTEX_BITSET_MATCH_ANY);
  }
  return wait_in_slices(clock, *end_ns, [&](const timespec* until) {
    words[3] = reinterpret_cast<long>(until);
    return call_touched(SYS_futex, words, 0);
  });
}

// Waits on a word that other processes share. None: the command waits for nobody, or its wait stays
// with its word.
std::optional<long> wait_shared(const Words& given, int command, const timespec* limit) {
  const bool is_by_wall = (given[1] & FUTEX_CLOCK_REALTIME) != 0;
  if (is_one_of(command, {FUTEX_LOCK_PI, kLockPi2}))
    return call_in_slices(given, false, command == FUTEX_LOCK_PI || is_by_wall, limit);
  if (!is_one_of(command, {FUTEX_WAIT, FUTEX_WAIT_BITSET})) return {};
  const bool is_relative = command == FUTEX_WAIT;
  const bool is_of_all =
      is_relative || static_cast<uint32_t>(given[5]) == uint32_t{FUTEX_BITSET_MATCH_ANY};
  if (limit == nullptr && is_of_all)
    if (const long result = wait_as_if_for_ever(given); result != -ENOSYS) return result;
  return call_in_slices(given, is_relative, !is_relative && is_by_wall, limit);
}

long answer_futex(const Words& given) {
  const int command = static_cast<int>(given[1]) & FUTEX_CMD_MASK;
  Words words;
  std::copy(std::begin(given), std::end(given), words);
  const bool has_limit = is_one_of(
      command, {FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE_PI, kLockPi2});
  const bool has_other = is_one_of(command, {FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_WAKE_OP,
                                             FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI});
  timespec limit{};
  const auto* asked = has_limit ? reinterpret_cast<const timespec*>(given[3]) : nullptr;
  if (asked != nullptr) {
    if (!outcore::os::copy_or_fail(&limit, asked, sizeof limit)) return -EFAULT;
    words[3] = reinterpret_cast<long>(&limit);
    asked = &limit;
  }
  const bool is_shared = (given[1] & FUTEX_PRIVATE_FLAG) == 0;
  if (is_shared && is_ours(given[0]))
    if (const auto result = wait_shared(words, command, asked); result) return *result;
  return call_touched(SYS_futex, words, has_other ? given[4] : 0);
}

// -- the call --

bool has_futex(const CallShape& shape) {
  return shape.arguments[0].kind == ArgumentShape::Kind::kFutex;
}

// Whether the handler runs on the stack of the call: then the frame of the signal, which must stay
// as it is, lies right below the data of the function that made the call.
bool is_right_below(long long stack, const ucontext_t* frame) {
  constexpr uintptr_t kFrameMax = 64 << 10;  // of a signal: with AMX 11 KiB
  return static_cast<uintptr_t>(stack) - reinterpret_cast<uintptr_t>(frame) < kFrameMax;
}

// The answer, or -errno. None: the call goes to the kernel as it is.
std::optional<long> carry_out(long number, const Words& given, ucontext_t* context) {
  OC_CHECK(context != nullptr);
  const CallShape& shape = shape_of(number);
  const auto stack = static_cast<uintptr_t>(context->uc_mcontext.gregs[REG_RSP]);
  if (is_inside() || !Door::is_any_taken() || is_repeated(number, given, stack)) return {};
  TrappedArguments arguments(shape, given);
  if (!arguments.concern_ours()) return {};
  const Carrying carrying(number, given);
  if (number == SYS_futex) return answer_futex(given);
  if (const int error = arguments.copy_in(); error != 0) return -error;
  const Words& words = arguments.words();
  OC_ASSERT(number >= 0 && number < shapes::kNumbersMax);
  long result = 0;
  if (has_futex(shape)) {
    result = call_touched(number, words, 0);
  } else if (is_answered_call(number)) {
    result =
        outcore_answer_syscall(number, words[0], words[1], words[2], words[3], words[4], words[5]);
    if (result == -1) result = -errno;
  } else {
    result = call_and_wait(number, words);
  }
  const int error = arguments.copy_out();
  return error != 0 && result >= 0 ? -error : result;
}

}  // namespace

namespace outcore::preload {

void set_program_trap_action(const struct sigaction& action) { program_action.set(action); }

bool Window::exchange_program_action(const struct sigaction* now, struct sigaction* before) {
  if (!is_answering_) return false;
  const os::SignalBlock block;
  const os::Locked locked(changing);
  if (before != nullptr) *before = program_action.get();
  if (now == nullptr) return true;
  program_action.set(*now);
  // If the program wants its handler on the thread's own stack, ours runs there, too.
  struct sigaction ours {};
  ours.sa_sigaction = on_trap;
  const int on_stack = ProgramAction::is_handler(*now) ? now->sa_flags & SA_ONSTACK : SA_ONSTACK;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | on_stack;
  real().sigaction(SIGSYS, &ours, nullptr);
  return true;
}

void on_trap(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  auto* const frame = static_cast<ucontext_t*>(context);
  OC_CHECK(info != nullptr && frame != nullptr);
  greg_t* const registers = frame->uc_mcontext.gregs;
  constexpr int kBySeccomp = 1;  // SYS_SECCOMP
  const bool is_ours_to_answer =
      info->si_code == kBySeccomp && info->si_errno == static_cast<int>(WindowPlace::kMark) &&
      // A run within a run tries the filter by itself.
      (is_trying_traps || Window::is_ready() || !ProgramAction::is_handler(program_action.get()));
  if (!is_ours_to_answer) {
    pass_on(signal, info, context);
  } else if (is_trying_traps) {
    ++trap_count;
    registers[REG_RAX] = -ENOSYS;
  } else {
    const int before = cancel_type;
    int ignored = 0;
    ::pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
    const Words words = {registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                         registers[REG_R10], registers[REG_R8],  registers[REG_R9]};
    // The window may not be ready yet: another process has passed an address of it to this one.
    const bool can_call = Window::is_ready() || Window::instance().prepare();
    const std::optional<long> answer =
        can_call ? carry_out(info->si_syscall, words, frame) : std::optional<long>(-EFAULT);
    if (answer)
      registers[REG_RAX] = *answer;
    else if (is_right_below(registers[REG_RSP], frame))
      registers[REG_RAX] = call_and_wait(info->si_syscall, words);
    else
      Window::call_anew(info->si_syscall, registers);
    ::pthread_setcanceltype(cancel_type, &ignored);
    cancel_type = before;
    // Signals that the call, or a handler meanwhile, has blocked stay blocked.
    sigset_t now;
    real().pthread_sigmask(SIG_BLOCK, nullptr, &now);
    std::memcpy(&frame->uc_sigmask, &now, sizeof(uint64_t));
  }
  errno = saved_errno;
}

}  // namespace outcore::preload
