// sigbus_handler DIR [BYTES]: the program's own handlers of SIGBUS and SIGSEGV are called as
// without anybody between: with the right address and code, on the right stack and thread, once
// where it was told so; and sigaction and signal say what was set.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <ucontext.h>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kStackBytes = 64 * 1024;
uint8_t signal_stack[kStackBytes];

// What the handler found, and what it is to do.
struct Seen {
  int signal, code;
  uint8_t* address;
  bool is_write, is_on_stack, is_same_thread;
} seen;
enum class Then { kJump, kExtendFile, kUnprotect, kReturn } then;
volatile int calls = 0;
sigjmp_buf back;
int file = -1;
uint64_t file_bytes = 0;
uint8_t* touched_by_handler = nullptr;
uint8_t byte_of_handler = 0;
pthread_t faulting;

void on_signal(int signal, siginfo_t* info, void* context) {
  auto* here = reinterpret_cast<uint8_t*>(&info);
  const auto* c = static_cast<ucontext_t*>(context);
  seen.signal = signal;
  seen.code = info->si_code;
  seen.address = static_cast<uint8_t*>(info->si_addr);
  seen.is_write = (c->uc_mcontext.gregs[REG_ERR] & 2) != 0;
  seen.is_on_stack = here >= signal_stack && here < signal_stack + kStackBytes;
  seen.is_same_thread = ::pthread_equal(::pthread_self(), faulting) != 0;
  calls = calls + 1;
  if (touched_by_handler != nullptr)  // a page of a mapping, in a handler, with signals blocked
    byte_of_handler = *static_cast<volatile uint8_t*>(touched_by_handler);
  if (then == Then::kJump) siglongjmp(back, 1);
  if (then == Then::kExtendFile && ::ftruncate(file, static_cast<off_t>(file_bytes)) != 0)
    ::_exit(9);
  if (then == Then::kUnprotect) {
    auto page = reinterpret_cast<uintptr_t>(seen.address) & ~(kPageBytes - 1);
    if (::mprotect(reinterpret_cast<void*>(page), kPageBytes, PROT_READ | PROT_WRITE) != 0)
      ::_exit(8);
  }
}

void on_plain(int) { ::_exit(7); }

void set(int signal, int flags) {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | flags;
  ::sigemptyset(&action.sa_mask);
  ::sigaddset(&action.sa_mask, SIGUSR2);
  require(::sigaction(signal, &action, nullptr) == 0, "sigaction");
}

// Whether the touch went through.
bool touch(uint8_t* at, bool is_write) {
  faulting = ::pthread_self();
  if (sigsetjmp(back, 1) != 0) return false;
  if (is_write)
    *static_cast<volatile uint8_t*>(at) = 42;
  else
    (void)*static_cast<volatile uint8_t*>(at);
  return true;
}

void expect(const char* what, int signal, int code, const uint8_t* at, bool is_write) {
  std::printf("%s: signal %d code %d\n", what, seen.signal, seen.code);
  if (seen.signal != signal || seen.code != code) fail("%s: another signal or code", what);
  if (seen.address != at)
    fail("%s: si_addr is off by %ld", what, static_cast<long>(seen.address - at));
  if (seen.is_write != is_write) fail("%s: reading taken for writing", what);
  require(seen.is_same_thread, "the handler runs in the thread that touched");
}

// What was set is what is found.
void test_actions() {
  const int signals[] = {SIGBUS, SIGSEGV};
  for (const int signal : signals) {
    struct sigaction old = {};
    require(::sigaction(signal, nullptr, &old) == 0, "sigaction");
    require(old.sa_handler == SIG_DFL, "at first there is no handler");
    require(::signal(signal, on_plain) == SIG_DFL, "signal gives the old handler");
    require(::signal(signal, SIG_IGN) == on_plain, "signal gives the old handler");
    set(signal, SA_ONSTACK | SA_RESTART);
    require(::sigaction(signal, nullptr, &old) == 0, "sigaction");
    require(old.sa_sigaction == on_signal, "sigaction gives the handler that was set");
    const auto flags_of = [](const struct sigaction& action) {  // the C library adds one
      return static_cast<unsigned>(action.sa_flags) &
             (SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND);
    };
    require(flags_of(old) == (SA_SIGINFO | SA_ONSTACK | SA_RESTART), "and its flags");
    require(::sigismember(&old.sa_mask, SIGUSR2) == 1, "and its mask");
    require(::sigismember(&old.sa_mask, SIGUSR1) == 0, "and its mask");
    struct sigaction next = {};
    next.sa_handler = on_plain;
    next.sa_flags = SA_RESETHAND;
    require(::sigaction(signal, &next, &old) == 0, "sigaction");
    require(old.sa_sigaction == on_signal, "the old handler comes back");
    require(::sigaction(signal, &old, &next) == 0, "sigaction");
    require(next.sa_handler == on_plain, "the old handler comes back");
    require(flags_of(next) == SA_RESETHAND, "and its flags");
    auto* was = reinterpret_cast<void*>(::signal(signal, SIG_DFL));
    require(was == reinterpret_cast<void*>(on_signal), "signal gives the handler of sigaction");
  }
  std::printf("actions are as they were set\n");
}

void test_truncated(uint8_t* memory, const char* what, int flags) {
  const uint64_t half = file_bytes / 2;
  uint8_t* at = memory + half + kPageBytes + 123;
  set(SIGBUS, flags);
  then = Then::kJump;
  require(::ftruncate(file, static_cast<off_t>(half)) == 0, "ftruncate");
  require(!touch(at, false), "reading behind the end fails");
  expect(what, SIGBUS, BUS_ADRERR, at, false);
  if (seen.is_on_stack != ((flags & SA_ONSTACK) != 0)) fail("%s: the wrong stack", what);
  require(!touch(at, true), "writing behind the end fails");
  expect(what, SIGBUS, BUS_ADRERR, at, true);
  require(touch(memory + half - 1, false), "what is before the end can be read");
  // Where the handler makes the file longer, the touch goes on.
  then = Then::kExtendFile;
  require(touch(at, false) && *at == 0, "after the handler the page is there");
  std::printf("%s: the handler lengthens the file\n", what);
}

void test_protected(uint8_t* memory, const char* what, int flags) {
  set(SIGSEGV, flags);
  then = Then::kJump;
  require(::mprotect(memory, file_bytes, PROT_READ) == 0, "mprotect");
  uint8_t* at = memory + 3 * kPageBytes + 5;
  require(!touch(at, true), "writing to what is read-only fails");
  expect(what, SIGSEGV, SEGV_ACCERR, at, true);
  if (seen.is_on_stack != ((flags & SA_ONSTACK) != 0)) fail("%s: the wrong stack", what);
  then = Then::kUnprotect;
  const int before = calls;
  require(touch(at, true) && *at == 42, "after the handler the write is there");
  require(calls == before + 1, "the handler is called once");
  require(::mprotect(memory, file_bytes, PROT_NONE) == 0, "mprotect");
  then = Then::kJump;
  require(!touch(at, false), "reading what has no rights fails");
  expect(what, SIGSEGV, SEGV_ACCERR, at, false);
  require(::mprotect(memory, file_bytes, PROT_READ | PROT_WRITE) == 0, "mprotect");
  require(*at == 42, "the bytes are there again");
}

// In a child, which ends as the touch ends it.
template <typename Prepare>
int code_of_touch(uint8_t* at, Prepare prepare) {
  const pid_t child = ::fork();
  if (child == 0) {
    prepare();
    (void)*static_cast<volatile uint8_t*>(at);
    ::_exit(0);
  }
  return code_of(child);
}

void test_deaths(uint8_t* memory) {
  const uint64_t half = file_bytes / 2;
  uint8_t* at = memory + half + 7;
  require(::ftruncate(file, static_cast<off_t>(half)) == 0, "ftruncate");
  const int by_default = code_of_touch(at, [] { ::signal(SIGBUS, SIG_DFL); });
  const int ignored = code_of_touch(at, [] { ::signal(SIGBUS, SIG_IGN); });
  const int blocked = code_of_touch(at, [] {
    set(SIGBUS, 0);
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, nullptr);
  });
  const int once = code_of_touch(at, [at] {
    set(SIGBUS, SA_RESETHAND);
    then = Then::kJump;
    const int before = calls;
    if (touch(at, false) || calls != before + 1) ::_exit(5);
    struct sigaction now = {};
    ::sigaction(SIGBUS, nullptr, &now);
    if (now.sa_handler != SIG_DFL) ::_exit(6);
  });
  const int plain = code_of_touch(at, [] { ::signal(SIGBUS, on_plain); });
  std::printf("default %d ignored %d blocked %d once %d plain %d\n", by_default, ignored, blocked,
              once, plain);
  require(by_default == 1000 + SIGBUS, "by default a touch behind the end ends the process");
  require(ignored == 1000 + SIGBUS && blocked == 1000 + SIGBUS, "nor can it be ignored or blocked");
  require(once == 1000 + SIGBUS, "SA_RESETHAND is for one signal");
  require(plain == 7, "a handler of one argument is called");
  require(::ftruncate(file, static_cast<off_t>(file_bytes)) == 0, "ftruncate");
}

// A handler reads a page that nobody has touched, while SIGBUS and all else is blocked.
void test_touch_in_handler(uint8_t* memory, const uint8_t* other) {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigfillset(&action.sa_mask);
  require(::sigaction(SIGBUS, &action, nullptr) == 0, "sigaction");
  require(::ftruncate(file, 0) == 0, "ftruncate");
  then = Then::kJump;
  for (uint64_t page = 0; page < file_bytes / kPageBytes; page += 3) {
    touched_by_handler = const_cast<uint8_t*>(other) + page * kPageBytes;
    require(!touch(memory + page * kPageBytes, false), "the file is empty");
    const auto word = word_at(1, page * kPageBytes / 8);
    require(byte_of_handler == (word & 0xff), "the handler reads the other file");
  }
  touched_by_handler = nullptr;
  std::printf("a handler touches another mapping\n");
  // A signal that somebody sends comes to the handler as well.
  then = Then::kReturn;
  const int before = calls;
  require(::raise(SIGBUS) == 0 && calls == before + 1, "raise calls the handler");
  require(seen.code == SI_TKILL, "with the code of raise");
  std::printf("a raised signal comes as well\n");
}

struct Arguments {
  uint8_t* memory;
};

void* run_thread(void* argument) {
  uint8_t* memory = static_cast<Arguments*>(argument)->memory;
  stack_t none = {};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
  test_truncated(memory, "thread", 0);
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  file_bytes = begin(count, arguments);
  const rlimit no_core = {0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  test_actions();
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = kStackBytes;
  require(::sigaltstack(&stack, nullptr) == 0, "sigaltstack");
  file = make_file("sigbus", file_bytes, 1);
  const int other = make_file("sigbus.other", file_bytes, 1);
  auto* memory = reinterpret_cast<uint8_t*>(map(file, file_bytes, PROT_READ | PROT_WRITE));
  auto* other_memory = reinterpret_cast<uint8_t*>(map(other, file_bytes, PROT_READ));
  test_truncated(memory, "plain", 0);
  test_truncated(memory, "on a stack", SA_ONSTACK);
  test_truncated(memory, "not deferred", SA_ONSTACK | SA_NODEFER);
  test_protected(memory, "protected", 0);
  test_protected(memory, "protected, on a stack", SA_ONSTACK);
  test_deaths(memory);
  pthread_t thread;
  Arguments of_thread{memory};
  require(::pthread_create(&thread, nullptr, run_thread, &of_thread) == 0, "pthread_create");
  ::pthread_join(thread, nullptr);
  test_touch_in_handler(memory, other_memory);
  std::printf("all is as it must be\n");
  return 0;
}
