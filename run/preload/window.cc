#include "run/preload/window.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/process_lock.h"
#include "core/os/signal_delivery.h"
#include "run/preload/as_program.h"
#include "run/preload/door.h"
#include "run/preload/real.h"
#include "run/preload/words.h"

// Moves the arguments to where the kernel expects them; the instruction returns to the caller.
extern "C" {
[[gnu::used, gnu::visibility("hidden")]] constinit std::atomic<const void*> outcore_window_code{
    nullptr};
long outcore_window_call(long number, long a, long b, long c, long d, long e, long f);
}
asm(R"(
  .text
  .hidden outcore_window_call
  .globl outcore_window_call
  .type outcore_window_call, @function
outcore_window_call:
  .cfi_startproc
  endbr64
  movq %rdi, %rax
  movq %rsi, %rdi
  movq %rdx, %rsi
  movq %rcx, %rdx
  movq %r8, %r10
  movq %r9, %r8
  movq 8(%rsp), %r9
  jmpq *outcore_window_code(%rip)
  .cfi_endproc
  .size outcore_window_call, .-outcore_window_call
)");

namespace outcore::preload {
namespace {

constexpr uint64_t kGrain = uint64_t{2} << 20;
constexpr int kTriesMax = 4096;

// Only one thread at a time prepares the window, and none while the process forks.
os::ProcessLock preparing;

// What the environment said when it was first read.
char given[512] = {};

// Makes a call with another instruction than the window's, as the program would.
long call_past(long number, uint64_t first) {
  long result = number;
  asm volatile("syscall"  // banned-ok: an instruction's
               : "+a"(result)
               : "D"(first), "S"(0L)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace

std::atomic<Window::Offer> Window::offer_{Offer::kUnknown};
std::atomic<bool> Window::is_ready_{false};
std::atomic<bool> Window::is_answering_{false};
std::atomic<uint64_t> Window::base_{0};
constinit thread_local bool is_trying_traps = false;
constinit thread_local unsigned trap_count = 0;

Window& Window::instance() {
  static Window* const window = new Window;  // used until the process ends
  return *window;
}

// The text is kept, because the program may clear its environment.
bool Window::read_environment() {
  const char* const text = std::getenv(WindowPlace::kVariable);
  const std::string_view named = text == nullptr ? "" : text;
  named.copy(given, sizeof given - 1);
  const bool is_none = named.empty() || named.starts_with(WindowPlace::kNone);
  const std::optional<WindowPlace> place =
      is_none ? std::nullopt : WindowPlace::parse(std::string(named).c_str());
  if (place) base_.store(place->base);
  offer_.store(is_none ? Offer::kNone : Offer::kThere);
  return !is_none;
}

void Window::answer_traps() {
  if (!is_offered() || is_answering_) return;
  struct sigaction ours {
  }, before{};
  ours.sa_sigaction = on_trap;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | SA_ONSTACK;
  if (real().sigaction(SIGSYS, &ours, &before) != 0) return;
  if (before.sa_sigaction != on_trap) set_program_trap_action(before);
  is_answering_.store(true);
}

bool Window::covers(const void* address, uint64_t size_bytes) {
  if (!is_ready()) return false;
  const uint64_t at = reinterpret_cast<uint64_t>(address) - base_.load(std::memory_order_relaxed);
  return at < WindowPlace::kBytes && size_bytes <= WindowPlace::kBytes - at;
}

bool Window::may_be_a_peers(const void* address, uint64_t size_bytes) {
  static_cast<void>(is_offered());  // others may use the place also if this process cannot
  const uint64_t base = base_.load(), from = reinterpret_cast<uint64_t>(address);
  return base != 0 && size_bytes != 0 &&
         (from - base < WindowPlace::kBytes || base - from < size_bytes);
}

long Window::call(long number, const long (&w)[6]) {
  OC_CHECK(outcore_window_code.load(std::memory_order_relaxed) != nullptr);
  return outcore_window_call(number, w[0], w[1], w[2], w[3], w[4], w[5]);
}

// The return address is put below the red zone, which the function that made the call may use.
void Window::call_anew(long number, long long* registers) {
  const auto code = reinterpret_cast<uint64_t>(outcore_window_code.load(std::memory_order_relaxed));
  OC_CHECK(code != 0);
  const uint64_t below = static_cast<uint64_t>(registers[REG_RSP]) - WindowPlace::kRedZone;
  auto* const place = reinterpret_cast<uint64_t*>(below) - 1;
  *place = static_cast<uint64_t>(registers[REG_RIP]);
  registers[REG_RSP] = static_cast<long long>(below - sizeof *place);
  registers[REG_RIP] = static_cast<long long>(code + WindowPlace::kAnew);
  registers[REG_RAX] = number;
}

bool Window::has_handlers() const {
  struct sigaction now {};
  return real().sigaction(SIGSYS, nullptr, &now) == 0 && now.sa_sigaction == on_trap &&
         !os::is_bus_handler_replaced();
}

std::string Window::why_not() {
  if (is_tried_.load(std::memory_order_acquire)) return why_not_;
  const std::string_view none = WindowPlace::kNone;
  return std::string_view(given).starts_with(none) ? given + none.size() : std::string();
}

bool Window::prepare() {
  if (is_ready()) return true;
  // A child of vfork shares its parent's memory, but has signal handlers of its own.
  if (!is_offered() || Door::instance().is_of_another_process()) return false;
  const int saved_errno = errno;
  answer_traps();
  const os::SignalBlock block;
  bool is_wrong = false;
  {
    const os::Locked once(preparing);
    if (!is_tried_) {
      why_not_ = set_up();
      is_wrong = !why_not_.empty();
      if (is_wrong) offer_.store(Offer::kNone);
      is_tried_.store(true, std::memory_order_release);
    }
  }
  if (is_wrong) say(why_not() + "; faults come by messages");
  errno = saved_errno;
  return is_ready();
}

// Returns why the window cannot be used; empty: it can.
std::string Window::set_up() {
  const std::string told = std::string(WindowPlace::kVariable) + "=" + given;
  const std::optional<WindowPlace> place = WindowPlace::parse(given);
  if (!place) return told + " is no place for a window: leave the variable to `outcore run`";
  place_ = *place;
  if (!is_answering_) return "the handler of SIGSYS is refused";
  if (std::string why = map_instruction(); !why.empty()) return why;
  if (!is_filter_right())
    return told + ": no filter traps what points there: start the program by `outcore run`";
  uint64_t start = 0;  // if there is no random number: at the beginning
  const ssize_t ignored = ::getrandom(&start, sizeof start, GRND_NONBLOCK);
  static_cast<void>(ignored);
  next_.store(start % (WindowPlace::kBytes / 2) / kGrain * kGrain);
  OC_CHECK(base_.load() == place_.base);
  is_ready_.store(true, std::memory_order_release);
  pass_ranges();
  return {};
}

std::string Window::map_instruction() const {
  auto* const wanted = reinterpret_cast<void*>(place_.code);
  void* p = real().mmap(wanted, WindowPlace::kPage, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (p != wanted) {
    if (p != MAP_FAILED) real().munmap(p, WindowPlace::kPage);
    return "the window's instruction has no place";
  }
  std::memcpy(p, WindowPlace::kCode, sizeof WindowPlace::kCode);
  if (real().mprotect(p, WindowPlace::kPage, PROT_READ | PROT_EXEC) != 0) {
    real().munmap(p, WindowPlace::kPage);
    return "the window's instruction may not be executed";
  }
  OC_CHECK(outcore_window_code.load() == nullptr);
  outcore_window_code.store(p);
  return {};
}

// Whether the filter traps both ends of the window, but not what lies beside them, and lets our
// instruction pass.
bool Window::is_filter_right() {
  const uint64_t last = place_.base + WindowPlace::kBytes - 1;
  sigset_t only, before;
  sigemptyset(&only);
  sigaddset(&only, SIGSYS);
  real().pthread_sigmask(SIG_UNBLOCK, &only, &before);
  is_trying_traps = true;
  trap_count = 0;
  call_past(SYS_access, place_.base);
  call_past(SYS_access, last);
  const bool is_trapped = trap_count == 2;
  call_past(SYS_access, place_.base - 1);
  call_past(SYS_access, last + 1);
  // Made by our instruction. Calls that are made anew use another one, behind it.
  const long there[6] = {static_cast<long>(place_.base), 0, 0, 0, 0, 0};
  call(SYS_access, there);
  const bool is_right = is_trapped && trap_count == 2;
  is_trying_traps = false;
  real().pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_right;
}

// The kernel refuses MAP_SHARED_VALIDATE together with MAP_FIXED_NOREPLACE.
void* Window::map_at(void* wanted, size_t size_bytes, int protection, int flags, int fd,
                     off_t offset) {
  if ((flags & MAP_TYPE) != MAP_SHARED_VALIDATE)
    return real().mmap(wanted, size_bytes, protection, flags | MAP_FIXED_NOREPLACE, fd, offset);
  constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  void* const reserved = real().mmap(wanted, size_bytes, PROT_NONE, kReserve, -1, 0);
  if (reserved != wanted) return reserved;
  void* const p = real().mmap(wanted, size_bytes, protection, flags | MAP_FIXED, fd, offset);
  const int error = errno;
  if (p == MAP_FAILED) real().munmap(wanted, size_bytes);
  errno = error;
  return p;
}

void* Window::map(size_t size_bytes, int protection, int flags, int fd, off_t offset) {
  if (!is_ready() || size_bytes == 0 || size_bytes > WindowPlace::kBytes / 4) return MAP_FAILED;
  // Leaves a gap between mappings, so that mremap() can extend one in place and none runs into the
  // next.
  const uint64_t step = base::round_up(size_bytes, kGrain) + kGrain;
  const int saved_errno = errno;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    uint64_t at = next_.load();
    uint64_t from = at;
    do {
      from = at > WindowPlace::kBytes - step ? 0 : at;
    } while (!next_.compare_exchange_weak(at, from + step));
    auto* const wanted = reinterpret_cast<void*>(base_.load() + from);
    void* p = map_at(wanted, size_bytes, protection, flags, fd, offset);
    OC_ASSERT(p == MAP_FAILED || covers(p, size_bytes));
    if (p == wanted) return errno = saved_errno, p;
    if (p != MAP_FAILED) real().munmap(p, size_bytes);  // Linux before 4.17 ignores the flag
    if (p == MAP_FAILED && errno != EEXIST) break;
  }
  errno = saved_errno;
  return MAP_FAILED;
}

}  // namespace outcore::preload
