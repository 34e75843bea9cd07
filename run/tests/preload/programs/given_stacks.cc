// given_stacks DIR [BYTES]: stacks in memory that the program has allocated, or mapped, while other
// memory is used: of signal handlers, and of threads, which begin with all signals blocked.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kStackBytes = 66 << 10, kThreadBytes = 1 << 20, kBlockBytes = 2 << 20;
uint64_t bytes = 0;
std::atomic<int> handled{0};
int ends[2];  // of a pipe, through which a thread learns that it is over

void* allocate(uint64_t size) {
  void* p = nullptr;
  require(::posix_memalign(&p, kPageBytes, size) == 0, "posix_memalign");
  return p;
}

// Used so much of something else that what rests is no longer in memory.
void use_other_memory(const pthread_t* interrupted = nullptr) {
  static uint64_t seed = 0;
  auto* const other = static_cast<uint64_t*>(allocate(bytes));
  ++seed;
  for (uint64_t i = 0; i < bytes / 8; i += 512) {
    fill(other + i, 512, seed, i);
    if (interrupted != nullptr && i % (128 * 512) == 0) ::pthread_kill(*interrupted, SIGUSR1);
  }
  require(is_filled(other, bytes / 8, seed), "other memory");
  std::free(other);
}

// Goes deep into the stack.
void on_signal(int) {
  volatile char room[24 << 10];
  for (size_t i = 0; i < sizeof room; i += 512) room[i] = static_cast<char>(i);
  handled.fetch_add(1);
}

void handle_on(const char* what, void* memory, uint64_t size) {
  stack_t stack{}, found{};
  stack.ss_sp = memory;
  stack.ss_size = size;
  require(::syscall(SYS_sigaltstack, &stack, nullptr) == 0, "sigaltstack by number");
  for (int i = 0; i < 3; ++i) {
    use_other_memory();
    const int before = handled.load();
    ::raise(SIGUSR2);
    require(handled.load() == before + 1, "the handler runs");
  }
  require(::sigaltstack(nullptr, &found) == 0 && found.ss_sp == memory && found.ss_size == size,
          "sigaltstack tells what was set");
  stack.ss_flags = SS_DISABLE;
  require(::syscall(SYS_sigaltstack, &stack, nullptr) == 0, "sigaltstack by number");
  std::printf("handlers run on %s\n", what);
}

void signal_stacks() {
  void* const whole = std::malloc(kStackBytes);
  handle_on("allocated memory", whole, kStackBytes);
  std::free(whole);
  // In the middle of a block, and at no edge of a page.
  auto* const words = static_cast<uint64_t*>(std::malloc(kBlockBytes));
  fill(words, kBlockBytes / 8, 11);
  const uint64_t first = kBlockBytes / 16 + 3, count = kStackBytes / 8;
  use_other_memory();
  handle_on("a part of a block", words + first, kStackBytes);
  require(is_filled(words, first, 11), "what is before the stack stays");
  require(is_filled(words + first + count, kBlockBytes / 8 - first - count, 11, first + count),
          "and what is behind it");
  std::free(words);
  void* const mapped =
      ::mmap(nullptr, kThreadBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(mapped != MAP_FAILED, "mmap");
  handle_on("mapped memory", mapped, kThreadBytes);
  ::munmap(mapped, kThreadBytes);
  const int number = make_file("stack", kThreadBytes, 12);
  void* const of_file = map(number, kThreadBytes, PROT_READ | PROT_WRITE);
  handle_on("a mapped file", of_file, kThreadBytes);
  ::munmap(of_file, kThreadBytes);
  ::close(number);
  ::unlink("stack");  // its bytes are those of a stack
}

// A stack takes as much memory as is used of it.
void large_stacks_stay_small() {
  constexpr uint64_t kLarge = 8 << 20, kPages = kLarge / kPageBytes;
  void* const memory = allocate(kLarge);
  handle_on("a large stack", memory, kLarge);
  static unsigned char pages[kPages];
  require(::mincore(memory, kLarge, pages) == 0, "mincore");
  uint64_t resident = 0;
  for (const unsigned char page : pages) resident += page & 1;
  if (resident > kPages / 2) fail("%lu pages of a large stack are there", resident);
  std::free(memory);
}

void* wait_until_over(void* argument) {
  char byte = 0;
  while (::read(ends[0], &byte, 1) != 1) require(errno == EINTR, "read");
  return argument;
}

void threads() {
  for (int i = 0; i < 4; ++i) {
    void* const memory = allocate(kThreadBytes);
    std::memset(memory, i, kThreadBytes / 2);
    use_other_memory();
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    require(::pthread_attr_setstack(&attributes, memory, kThreadBytes) == 0, "setstack");
    pthread_t thread;
    require(::pthread_create(&thread, &attributes, wait_until_over, &handled) == 0,
            "pthread_create");
    use_other_memory(&thread);
    require(::write(ends[1], "e", 1) == 1, "write");
    void* result = nullptr;
    require(::pthread_join(thread, &result) == 0 && result == &handled, "pthread_join");
    ::pthread_attr_destroy(&attributes);
    std::free(memory);
  }
  require(handled.load() > 0, "signals came");
  std::printf("threads run on allocated memory\n");
}

}  // namespace

int main(int count, char** arguments) {
  bytes = begin(count, arguments, 8 << 20);
  struct sigaction action {};
  action.sa_handler = on_signal;
  require(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  action.sa_flags = SA_ONSTACK;
  require(::sigaction(SIGUSR2, &action, nullptr) == 0, "sigaction");
  require(::pipe(ends) == 0, "pipe");
  signal_stacks();
  large_stacks_stay_small();
  threads();
  return 0;
}
