// fork_first_malloc DIR: a process forks while another thread of it makes the very first large
// allocation. Both go on, can allocate, and find what they have written; neither hangs.
#include <pthread.h>
#include <unistd.h>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kBytes = 1 << 20, kWords = kBytes / 8;
constexpr int kRounds = 24;
pthread_barrier_t together;

void allocate(uint64_t seed) {
  auto* words = static_cast<uint64_t*>(std::malloc(kBytes));
  require(words != nullptr, "malloc");
  fill(words, kWords, seed);
  require(is_filled(words, kWords, seed), "what was written is there");
  std::free(words);
}

void* be_first(void*) {
  ::pthread_barrier_wait(&together);
  allocate(1);
  return nullptr;
}

// `delay`: how much later the fork comes, as the allocation takes a while.
void try_once(int delay) {
  ::alarm(40);  // who hangs ends by a signal
  require(::pthread_barrier_init(&together, nullptr, 2) == 0, "barrier");
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, be_first, nullptr) == 0, "thread");
  ::pthread_barrier_wait(&together);
  for (int i = 0; i < delay; ++i) asm volatile("");
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(40);
    allocate(2);
    ::_exit(0);
  }
  allocate(3);
  require(code_of(child) == 0, "the child goes on");
  require(::pthread_join(thread, nullptr) == 0, "join");
}

}  // namespace

int main(int count, char** arguments) {
  begin(count, arguments);
  for (int round = 0; round < kRounds; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      try_once(round * round * 1000);
      ::_exit(0);
    }
    if (const int code = code_of(child); code != 0) fail("round %d: it ended with %d", round, code);
  }
  std::printf("%d rounds\n", kRounds);
  return 0;
}
