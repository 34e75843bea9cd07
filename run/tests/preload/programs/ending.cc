// ending DIR [BYTES]: processes that have written to a mapping end in every way there is: by a
// signal in the middle of malloc(), by a heap that is found corrupt, from a handler, in two threads
// at once. Each ends as it should, none hangs, and what was written is in the file.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "program.h"

using namespace program;

namespace {

constexpr int kReadyFd = 9;

// Always in malloc() or free(), or close to it.
[[noreturn]] void allocate_for_ever() {
  void* blocks[512] = {};
  for (unsigned x = 1;;) {
    x = x * 1103515245 + 12345;
    void*& block = blocks[(x >> 8) % 512];
    std::free(block);
    block = std::malloc(1100 + (x >> 16) % 30000);
  }
}

void be_ready() { require(::write(kReadyFd, "r", 1) == 1, "write"); }

void* allocate(void*) { allocate_for_ever(); }

void* end_at_once(void* barrier) {
  ::pthread_barrier_wait(static_cast<pthread_barrier_t*>(barrier));
  ::_exit(5);
}

void set(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  require(::sigaction(signal, &action, nullptr) == 0, "sigaction");
}

void by_default(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// -- What a process does once it has written --

void wait_in_malloc() { be_ready(), allocate_for_ever(); }

void corrupt_heap() {
  be_ready();
  char* block = static_cast<char*>(std::malloc(2000));
  asm volatile("" : "+r"(block));  // the compiler is not to see that this is wrong
  std::memset(block, 0xff, 2000 + 64);
  for (int i = 0; i < 100; ++i) require(std::malloc(200000 >> (i % 5)) != nullptr, "malloc");
}

void exit_from_handler() {
  set(
      SIGALRM, [](int) { ::_exit(7); }, 0);
  wait_in_malloc();
}

void abort_from_handler() {
  set(
      SIGTERM, [](int) { std::abort(); }, 0);
  wait_in_malloc();
}

void crash_from_handler() {
  set(
      SIGTERM, [](int) { *reinterpret_cast<volatile int*>(16) = 1; }, 0);
  wait_in_malloc();
}

void raise_again() { set(SIGTERM, by_default, 0), wait_in_malloc(); }

void raise_again_once() {
  set(
      SIGTERM, [](int signal) { ::raise(signal); }, SA_RESETHAND);
  wait_in_malloc();
}

void divide() {
  be_ready();
  asm volatile("xorl %%ecx, %%ecx; movl $1, %%eax; cltd; idivl %%ecx" ::: "eax", "ecx", "edx");
}

void exit_by_number() {
  be_ready();
  ::syscall(SYS_exit_group, 6);
}

void end_in_threads() {
  be_ready();
  pthread_barrier_t barrier;
  ::pthread_barrier_init(&barrier, nullptr, 4);
  pthread_t thread;
  ::pthread_create(&thread, nullptr, allocate, nullptr);
  for (int i = 0; i < 3; ++i) ::pthread_create(&thread, nullptr, end_at_once, &barrier);
  end_at_once(&barrier);
}

// The child's changes are the child's: the parent's signals are as they were.
void vfork_first() {
  const pid_t child = ::vfork();
  if (child == 0) {
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    ::sigaction(SIGTERM, &ignored, nullptr);
    ::_exit(0);
  }
  require(code_of(child) == 0, "vfork");
  wait_in_malloc();
}

void child_first() {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGTERM);
    ::_exit(1);
  }
  require(code_of(child) == 1000 + SIGTERM, "the child ends by its signal");
  wait_in_malloc();
}

struct Way {
  const char* name;
  void (*live)();
  int signal;  // that is sent to it; 0: none
  int code;
  int times;
};

constexpr Way kWays[] = {{"SIGTERM in malloc", wait_in_malloc, SIGTERM, 1000 + SIGTERM, 25},
                         {"SIGINT in malloc", wait_in_malloc, SIGINT, 1000 + SIGINT, 1},
                         {"SIGABRT in malloc", wait_in_malloc, SIGABRT, 1000 + SIGABRT, 3},
                         {"SIGSEGV in malloc", wait_in_malloc, SIGSEGV, 1000 + SIGSEGV, 3},
                         {"SIGBUS in malloc", wait_in_malloc, SIGBUS, 1000 + SIGBUS, 1},
                         {"a realtime signal", wait_in_malloc, 40, 1040, 1},
                         {"a corrupt heap", corrupt_heap, 0, 1000 + SIGABRT, 3},
                         {"_exit from a handler", exit_from_handler, SIGALRM, 7, 10},
                         {"abort from a handler", abort_from_handler, SIGTERM, 1000 + SIGABRT, 5},
                         {"a crash in a handler", crash_from_handler, SIGTERM, 1000 + SIGSEGV, 5},
                         {"a handler that raises again", raise_again, SIGTERM, 1000 + SIGTERM, 3},
                         {"one that runs once", raise_again_once, SIGTERM, 1000 + SIGTERM, 3},
                         {"a division by zero", divide, 0, 1000 + SIGFPE, 1},
                         {"_exit by its number", exit_by_number, 0, 6, 1},
                         {"_exit in four threads", end_in_threads, 0, 5, 5},
                         {"vfork before", vfork_first, SIGTERM, 1000 + SIGTERM, 1},
                         {"a child that ends first", child_first, SIGTERM, 1000 + SIGTERM, 1}};

// In the process that is to end.
int live(const Way& way, uint64_t bytes) {
  const int number = ::open("ending", O_RDWR);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  fill(words, bytes / 8, 2);
  way.live();
  return 0;
}

// Waits until it has said that it has written, sends what is to be sent, and waits for its end.
int end_one(const Way& way, pid_t child, int ready) {
  constexpr int kPatienceMs = 20'000;
  char byte = 0;
  if (way.signal != 0 && ::read(ready, &byte, 1) == 1) {
    ::poll(nullptr, 0, 10);  // on, into malloc
    ::kill(child, way.signal);
  }
  const int end = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
  pollfd wanted{end, POLLIN, 0};
  if (::poll(&wanted, 1, kPatienceMs) != 1) {
    std::printf("%s: it hangs\n", way.name);
    ::kill(child, SIGKILL);
  }
  ::close(end);
  return code_of(child);
}

void try_way(const Way& way, size_t index, uint64_t bytes) {
  for (int i = 0; i < way.times; ++i) {
    const int number = make_file("ending", bytes, 1);
    int ready[2];
    require(::pipe2(ready, O_CLOEXEC) == 0, "pipe");
    const pid_t child = ::fork();
    if (child == 0) {
      char which[16], size[32];
      std::snprintf(which, sizeof which, "%zu", index);
      std::snprintf(size, sizeof size, "%lu", bytes);
      require(::dup2(ready[1], kReadyFd) == kReadyFd, "dup2");
      ::execl("/proc/self/exe", "ending", ".", size, which, nullptr);
      ::_exit(99);
    }
    ::close(ready[1]);
    const int code = end_one(way, child, ready[0]);
    ::close(ready[0]);
    if (code != way.code) fail("%s: it ended with %d", way.name, code);
    uint64_t back[512];
    for (uint64_t at = 0; at < bytes; at += sizeof back) {
      require(::pread(number, back, sizeof back, static_cast<off_t>(at)) == sizeof back, "pread");
      if (!is_filled(back, 512, 2, at / 8)) fail("%s: bytes are lost", way.name);
    }
    ::close(number);
  }
  std::printf("%s: %d times as it should\n", way.name, way.times);
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments, 1 << 18);
  if (count > 3) return live(kWays[std::strtoul(arguments[3], nullptr, 10)], bytes);
  for (size_t i = 0; i < sizeof kWays / sizeof kWays[0]; ++i) try_way(kWays[i], i, bytes);
  return 0;
}
