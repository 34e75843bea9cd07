// kill_oneself DIR [BYTES]: a thread sends its own process a signal that ends it. The call does not
// return, whichever thread the kernel would choose, and what was written is in the file; where the
// signal is blocked, ignored, waited for or handled it returns, and the process goes on.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include <initializer_list>

#include "program.h"

using namespace program;

namespace {

// Shared with the child: whether it went on behind the call.
volatile int* has_returned = nullptr;

using Send = void (*)();

// By another thread than the first, which the kernel would choose for what the process gets.
void* send_and_note(void* what) {
  reinterpret_cast<Send>(what)();
  *has_returned = 1;
  for (;;) ::pause();
}

void send_in_thread(Send send) {
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, send_and_note, reinterpret_cast<void*>(send)) == 0,
          "pthread_create");
  for (;;) ::pause();
}

void send_here(Send send) { send_and_note(reinterpret_cast<void*>(send)); }

void mask(int how, int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  require(::pthread_sigmask(how, &only, nullptr) == 0, "pthread_sigmask");
}

void queue() {
  sigval none{};
  require(::sigqueue(::getpid(), SIGUSR2, none) == 0, "sigqueue");
}
void queue_by_number() {
  siginfo_t info{};
  info.si_code = SI_QUEUE;
  require(::syscall(SYS_rt_sigqueueinfo, ::getpid(), SIGTERM, &info) == 0, "rt_sigqueueinfo");
}
void kill_by_number() { ::syscall(SYS_kill, ::getpid(), SIGTERM); }
void kill_thread() { ::syscall(SYS_tgkill, ::getpid(), ::gettid(), SIGTERM); }
void kill_group() {
  require(::setpgid(0, 0) == 0, "setpgid");
  ::kill(0, SIGTERM);
}

struct Way {
  const char* name;
  void (*how)(Send);
  Send send;
  int signal;
};

constexpr Way kWays[] = {
    {"kill", send_in_thread, [] { ::kill(::getpid(), SIGTERM); }, SIGTERM},
    {"kill in the first thread", send_here, [] { ::kill(::getpid(), SIGINT); }, SIGINT},
    {"kill of the group", send_in_thread, kill_group, SIGTERM},
    {"killpg", send_here, [] { ::setpgid(0, 0), ::killpg(0, SIGHUP); }, SIGHUP},
    {"raise", send_in_thread, [] { ::raise(SIGTERM); }, SIGTERM},
    {"tgkill", send_in_thread, [] { ::tgkill(::getpid(), ::gettid(), SIGUSR1); }, SIGUSR1},
    {"pthread_kill", send_in_thread, [] { ::pthread_kill(::pthread_self(), SIGALRM); }, SIGALRM},
    {"sigqueue", send_in_thread, queue, SIGUSR2},
    {"kill by number", send_in_thread, kill_by_number, SIGTERM},
    {"tgkill by number", send_in_thread, kill_thread, SIGTERM},
    {"rt_sigqueueinfo by number", send_in_thread, queue_by_number, SIGTERM},
    {"a realtime signal", send_in_thread, [] { ::kill(::getpid(), SIGRTMIN); }, 34},
};

void* kill_process(void*) {
  require(::kill(::getpid(), SIGTERM) == 0, "kill");
  return nullptr;
}

void kill_from_thread() {
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, kill_process, nullptr) == 0, "pthread_create");
  require(::pthread_join(thread, nullptr) == 0, "pthread_join");
}

void wait_for_it() {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGTERM);
  int got = 0;
  require(::sigwait(&only, &got) == 0 && got == SIGTERM, "sigwait");
}

volatile int handled = 0;

// The kernel's struct sigaction, and what returns from a handler.
struct KernelsAction {
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};
constexpr unsigned long kRestorer = 0x04000000;
extern "C" void return_from_handler();
asm("return_from_handler: mov $15, %eax\n syscall\n");

// As runtimes do it that have no C library. The action there was before.
KernelsAction handle_by_number(int signal, void (*handler)(int), unsigned long flags) {
  const KernelsAction now{handler, flags | kRestorer, return_from_handler, 0};
  KernelsAction before{};
  require(::syscall(SYS_rt_sigaction, signal, &now, &before, 8) == 0, "rt_sigaction");
  return before;
}

// What does not end it; afterwards it writes once more, and does end.
constexpr struct {
  const char* name;
  void (*live)();
} kSurvivals[] = {
    {"blocked in all, and waited for",
     [] {
       mask(SIG_BLOCK, SIGTERM);
       kill_from_thread();
       wait_for_it();
       mask(SIG_UNBLOCK, SIGTERM);
     }},
    {"waited for by the first thread, not blocked in the sender",
     [] {
       pthread_t thread;
       int ends[2];
       require(::pipe(ends) == 0, "pipe");
       require(::pthread_create(
                   &thread, nullptr,
                   [](void* end) -> void* {
                     char byte = 0;
                     require(::read(*static_cast<int*>(end), &byte, 1) == 1, "read");
                     // Until the first thread sleeps in sigwait: only then it takes the signal.
                     char path[64], state = 'R';
                     std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", ::getpid());
                     while (state != 'S') {
                       std::FILE* file = std::fopen(path, "re");
                       require(std::fscanf(file, "%*d %*s %c", &state) == 1, "stat");
                       std::fclose(file);
                     }
                     return kill_process(nullptr);
                   },
                   ends) == 0,
               "pthread_create");
       mask(SIG_BLOCK, SIGTERM);
       require(::write(ends[1], "b", 1) == 1, "write");
       wait_for_it();
       mask(SIG_UNBLOCK, SIGTERM);
       require(::pthread_join(thread, nullptr) == 0, "pthread_join");
     }},
    {"ignored",
     [] {
       ::signal(SIGTERM, SIG_IGN);
       kill_from_thread();
       require(::raise(SIGTERM) == 0, "raise");
       ::signal(SIGTERM, SIG_DFL);
     }},
    {"handled",
     [] {
       ::signal(SIGTERM, [](int) { handled = handled + 1; });
       require(::raise(SIGTERM) == 0 && ::kill(::getpid(), SIGTERM) == 0 && handled == 2, "two");
       ::signal(SIGTERM, SIG_DFL);
     }},
    {"handled, as it was asked by number",
     [] {
       constexpr unsigned long kRestart = 0x10000000, kOnce = 0x80000000;
       handle_by_number(
           SIGTERM, [](int) { handled = handled + 1; }, kRestart);
       require(::raise(SIGTERM) == 0 && ::kill(::getpid(), SIGTERM) == 0 && handled == 2, "two");
       handle_by_number(
           SIGTERM, [](int) {}, kOnce);
       const KernelsAction once = handle_by_number(SIGTERM, SIG_DFL, 0);
       require((once.flags & ~kRestorer) == kOnce, "the flags that were set");
       require(handle_by_number(SIGTERM, SIG_DFL, 0).handler == SIG_DFL, "the default is seen");
       KernelsAction own{};  // of a signal that the C library keeps for itself
       require(::syscall(SYS_rt_sigaction, 32, nullptr, &own, 8) == 0, "signal 32");
       auto* const nowhere = reinterpret_cast<void*>(16);
       for (const int signal : {SIGTERM, SIGBUS, SIGRTMAX}) {
         require(::syscall(SYS_rt_sigaction, signal, nowhere, nullptr, 8) == -1 && errno == EFAULT,
                 "an action that is nowhere");
         require(::syscall(SYS_rt_sigaction, signal, nullptr, nowhere, 8) == -1 && errno == EFAULT,
                 "nowhere to tell the action");
       }
       struct sigaction by_library {};
       by_library.sa_handler = [](int) {};
       require(::sigaction(SIGTERM, &by_library, nullptr) == 0, "sigaction");
       require(::syscall(SYS_rt_sigaction, SIGTERM, nullptr, &own, 8) == 0, "rt_sigaction");
       require(((own.flags & kRestorer) != 0) == (own.restorer != nullptr), "a restorer, or none");
       ::signal(SIGTERM, SIG_DFL);
     }},
    {"signal 0", [] { require(::kill(::getpid(), 0) == 0 && ::raise(0) == 0, "0"); }},
    {"another process", [] {
       const pid_t child = ::fork();
       if (child == 0)
         for (;;) ::pause();
       require(::kill(child, SIGTERM) == 0 && code_of(child) == 1000 + SIGTERM, "child");
       require(::kill(child, SIGTERM) != 0 && errno == ESRCH, "nobody");
     }}};

void look(const char* name, uint64_t bytes, uint64_t seed) {
  const int number = ::open("kill", O_RDONLY);
  uint64_t back[512];
  for (uint64_t at = 0; at < bytes; at += sizeof back) {
    require(::pread(number, back, sizeof back, static_cast<off_t>(at)) == sizeof back, "pread");
    if (!is_filled(back, 512, seed, at / 8)) fail("%s: bytes are lost", name);
  }
  ::close(number);
}

template <typename What>
int in_child(uint64_t bytes, const What& what) {
  ::close(make_file("kill", bytes, 1));  // a file that another process has is the kernel's
  const pid_t child = ::fork();
  if (child == 0) {
    const int number = ::open("kill", O_RDWR);
    uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
    fill(words, bytes / 8, 2);
    what(words);
    ::_exit(0);
  }
  return code_of(child);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments, 1 << 18);
  has_returned = static_cast<volatile int*>(
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  for (const Way& way : kWays)
    for (int i = 0; i < 5; ++i) {
      *has_returned = 0;
      const int code = in_child(bytes, [&](uint64_t*) { way.how(way.send); });
      if (code != 1000 + way.signal) fail("%s: it ended with %d", way.name, code);
      if (*has_returned != 0) fail("%s: it returned", way.name);
      look(way.name, bytes, 2);
    }
  for (const auto& way : kSurvivals) {
    const int code = in_child(bytes, [&](uint64_t* words) {
      way.live();
      fill(words, bytes / 8, 3);
      require(::munmap(words, bytes) == 0, "munmap");
      const int again = ::open("kill", O_RDWR);
      fill(map(again, bytes, PROT_READ | PROT_WRITE), bytes / 8, 4);
      ::raise(SIGTERM);
    });
    if (code != 1000 + SIGTERM) fail("%s: it ended with %d", way.name, code);
    look(way.name, bytes, 4);
  }
  std::printf("all as it should\n");
  return 0;
}
