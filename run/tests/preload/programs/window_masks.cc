// window_masks DIR [CASE]: the program blocks every signal, or sets actions of all of them, by each
// of the C library's functions that can; what it then touches in a mapping, and gives to a system
// call there, is as without anybody between, and its handler is not called for that.
#include <pthread.h>
#include <spawn.h>
#include <sys/stat.h>
#include <ucontext.h>

#include "window_cases.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // that is what old programs call

using namespace program;

namespace {

Mapped file;

void handle_wrongly(int signal) {
  std::fprintf(stderr, "FAILED: the handler of signal %d is called for nothing\n", signal);
  ::_exit(3);
}

void begin_case() {
  file = map_new_file();
  file.evict();
}
void end_case() {
  file.evict();
  require_works(file);
}

void require_blocked() {
  sigset_t mask;
  require(::pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0, "pthread_sigmask");
  for (const int signal : {SIGUSR1, SIGTERM})
    require(sigismember(&mask, signal) == 1, "the signals are blocked");
}

// One case for each way to block, or to set.
template <typename F>
void with(F f) {
  begin_case();
  f();
  end_case();
}

void set_context() {
  static ucontext_t context;
  static volatile bool is_set = false;
  require(::getcontext(&context) == 0, "getcontext");
  if (is_set) return require_blocked();
  is_set = true;
  sigfillset(&context.uc_sigmask);
  ::setcontext(&context);
  fail("setcontext returned");
}

void run_on_other_stack() {
  require_blocked();
  end_case();
}

void swap_context() {
  static ucontext_t main_context, other;
  static char stack[256 << 10];
  require(::getcontext(&other) == 0, "getcontext");
  other.uc_stack.ss_sp = stack;
  other.uc_stack.ss_size = sizeof stack;
  other.uc_link = &main_context;
  sigfillset(&other.uc_sigmask);
  ::makecontext(&other, run_on_other_stack, 0);
  require(::swapcontext(&main_context, &other) == 0, "swapcontext");
}

void* work_in_thread(void*) {
  require_blocked();
  end_case();
  return nullptr;
}

void start_blocked_thread() {
  pthread_attr_t attributes;
  sigset_t all;
  sigfillset(&all);
  require(::pthread_attr_init(&attributes) == 0, "pthread_attr_init");
  require(::pthread_attr_setsigmask_np(&attributes, &all) == 0, "pthread_attr_setsigmask_np");
  pthread_t thread;
  require(::pthread_create(&thread, &attributes, work_in_thread, nullptr) == 0, "pthread_create");
  ::pthread_join(thread, nullptr);
}

// A program that begins with all signals blocked.
void spawn_blocked() {
  posix_spawnattr_t attributes;
  sigset_t all;
  sigfillset(&all);
  require(::posix_spawnattr_init(&attributes) == 0, "posix_spawnattr_init");
  ::posix_spawnattr_setsigmask(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  char name[] = "window_masks", folder[] = "spawned", which[] = "none";
  char* const arguments[] = {name, folder, which, nullptr};
  require(::mkdir(folder, 0700) == 0, "mkdir");
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, "/proc/self/exe", nullptr, &attributes, arguments, ::environ);
  if (error != 0) fail("posix_spawn: %s", std::strerror(error));
  require(code_of(child) == 0, "a program that begins with all signals blocked works");
  ::rmdir(folder);
}

// What is sent comes to it, once.
volatile int handled = 0;
void count_signal(int) { handled = handled + 1; }

void handle_once() {
  for (const int signal : {SIGBUS, SIGSYS}) {
    begin_case();
    handled = 0;
    require(::sysv_signal(signal, count_signal) == SIG_DFL, "at first there is no handler");
    end_case();
    require(handled == 0, "no handler is called for what is touched");
    struct sigaction now {};
    require(::sigaction(signal, nullptr, &now) == 0, "sigaction");
    require(now.sa_handler == count_signal, "sigaction tells the handler");
    require(::raise(signal) == 0 && handled == 1, "a signal that is sent comes to it");
    require(::sigaction(signal, nullptr, &now) == 0, "sigaction");
    require(now.sa_handler == SIG_DFL, "which is for one signal");
    end_case();
    ::munmap(file.m, kMappedBytes);
    ::close(file.number);
  }
}

bool restarts(int signal) {
  struct sigaction now {};
  require(::sigaction(signal, nullptr, &now) == 0, "sigaction");
  return (now.sa_flags & SA_RESTART) != 0;
}

// What siginterrupt says of a signal holds for handlers that are set later; others restart.
void interrupt_later() {
  begin_case();
  for (const int signal : {SIGALRM, SIGBUS, SIGSYS}) {
    require(::signal(signal, handle_wrongly) != SIG_ERR, "signal");
    require(restarts(signal), "at first handlers restart");
    require(::siginterrupt(signal, 1) == 0, "siginterrupt");
    require(!restarts(signal), "siginterrupt holds for the handler that is set");
    require(::signal(signal, handle_wrongly) == handle_wrongly, "signal tells the handler before");
    require(!restarts(signal), "and for the handler that is set later");
    require(::siginterrupt(signal, 0) == 0, "siginterrupt");
    require(::signal(signal, handle_wrongly) == handle_wrongly, "signal tells the handler before");
    require(restarts(signal), "until it is taken back");
  }
  end_case();
}

void require_invalid(bool is_refused, const char* what) {
  require(is_refused && errno == EINVAL, what);
  errno = 0;
}

// What is no signal, or no handler, is refused.
void refuse_wrong() {
  begin_case();
  volatile int none = 999;
  errno = 0;
  for (const int signal : {none + 0, 0, -1}) {
    require_invalid(::sighold(signal) == -1, "sighold of no signal");
    require_invalid(::sigrelse(signal) == -1, "sigrelse of no signal");
    require_invalid(::sigignore(signal) == -1, "sigignore of no signal");
    require_invalid(::sigset(signal, handle_wrongly) == SIG_ERR, "sigset of no signal");
    require_invalid(::sigset(signal, SIG_HOLD) == SIG_ERR, "sigset of no signal to be held");
    require_invalid(::signal(signal, handle_wrongly) == SIG_ERR, "signal of no signal");
    require_invalid(::sysv_signal(signal, handle_wrongly) == SIG_ERR, "sysv_signal of no signal");
    require_invalid(::siginterrupt(signal, 1) == -1, "siginterrupt of no signal");
  }
  for (const int signal : {SIGUSR2, SIGBUS, SIGSYS}) {
    require_invalid(::signal(signal, SIG_ERR) == SIG_ERR, "signal of no handler");
    require_invalid(::sysv_signal(signal, SIG_ERR) == SIG_ERR, "sysv_signal of no handler");
    struct sigaction now {};
    require(::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_DFL,
            "what is refused changes nothing");
  }
  end_case();
}

// As daemons begin; SIGKILL and SIGSTOP are refused.
template <typename F>
void for_each_signal(F f) {
  for (int i = 1; i < NSIG; ++i) f(i);
}

const Case kCases[] = {
    {"none", [] { with([] {}); }},
    {"sigblock",
     [] {
       with([] {
         ::sigblock(~0);
         require_blocked();
       });
     }},
    {"sigsetmask",
     [] {
       with([] {
         ::sigsetmask(~0);
         require_blocked();
       });
     }},
    {"sighold",
     [] {
       with([] {
         for (const int signal : {SIGBUS, SIGSEGV, SIGSYS}) ::sighold(signal);
       });
     }},
    {"sigset-hold",
     [] {
       with([] {
         for (const int signal : {SIGBUS, SIGSEGV, SIGSYS}) ::sigset(signal, SIG_HOLD);
       });
     }},
    {"setcontext", [] { with(set_context); }},
    {"swapcontext", [] { with(swap_context); }},
    {"thread-attributes", [] { with(start_blocked_thread); }},
    {"spawned", [] { with(spawn_blocked); }},
    {"__sysv_signal", [] { with([] { ::__sysv_signal(SIGBUS, handle_wrongly); }); }},
    {"sysv_signal", [] { with([] { ::sysv_signal(SIGBUS, handle_wrongly); }); }},
    {"sysv_signal-of-traps", [] { with([] { ::sysv_signal(SIGSYS, handle_wrongly); }); }},
    {"sysv_signal-once", handle_once},
    {"sigset", [] { with([] { ::sigset(SIGBUS, handle_wrongly); }); }},
    {"sigset-of-traps", [] { with([] { ::sigset(SIGSYS, handle_wrongly); }); }},
    {"ssignal",
     [] {
       with([] {
         for (const int signal : {SIGBUS, SIGSYS}) ::ssignal(signal, handle_wrongly);
       });
     }},
    {"sigignore",
     [] {
       with([] {
         for (const int signal : {SIGBUS, SIGSYS}) ::sigignore(signal);
       });
     }},
    {"siginterrupt",
     [] {
       with([] {
         for (const int signal : {SIGBUS, SIGSYS}) ::siginterrupt(signal, 1);
       });
     }},
    {"siginterrupt-of-later-handlers", interrupt_later},
    {"refused", refuse_wrong},
    {"all-by-sysv_signal",
     [] { with([] { for_each_signal([](int i) { ::sysv_signal(i, SIG_DFL); }); }); }},
    {"all-by-__sysv_signal",
     [] { with([] { for_each_signal([](int i) { ::__sysv_signal(i, SIG_DFL); }); }); }},
    {"all-by-signal", [] { with([] { for_each_signal([](int i) { ::signal(i, SIG_DFL); }); }); }},
    {"all-by-sigset", [] { with([] { for_each_signal([](int i) { ::sigset(i, SIG_DFL); }); }); }},
};

}  // namespace

int main(int count, char** arguments) { return run_cases(count, arguments, kCases); }
