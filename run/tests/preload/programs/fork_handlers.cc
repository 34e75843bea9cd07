// fork_handlers DIR [BYTES]: what a program wants called at fork() opens files, maps them and waits
// for a lock whose holder opens files: in the parent and in the child, before the fork and after.
#include <pthread.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
std::atomic<bool> is_over{false};
uint64_t size_bytes = 0;

// As a library that opens its log anew does.
void open_something() {
  const int number = ::open("fork_handlers", O_RDWR);
  require(number >= 0, "open");
  uint64_t* words = map(number, size_bytes, PROT_READ | PROT_WRITE);
  require(words[1] == word_at(1, 1), "a new mapping shows the file");
  require(::munmap(words, size_bytes) == 0, "munmap");
  ::close(number);
}

void before() {
  ::pthread_mutex_lock(&lock);
  open_something();
}
void after() {
  open_something();
  ::pthread_mutex_unlock(&lock);
}

void* open_all_the_time(void*) {
  while (!is_over) {
    ::pthread_mutex_lock(&lock);
    open_something();
    ::pthread_mutex_unlock(&lock);
  }
  return nullptr;
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int kChildren = 10;
  size_bytes = begin(count, arguments, 1 << 18);
  require(::pthread_atfork(before, after, after) == 0, "pthread_atfork");
  const int number = make_file("fork_handlers", size_bytes, 1);
  uint64_t* words = map(number, size_bytes, PROT_READ | PROT_WRITE);
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, open_all_the_time, nullptr) == 0, "pthread_create");
  for (int i = 0; i < kChildren; ++i) {
    words[512 * i] = 7;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(words[512 * i] == 7 && words[1] == word_at(1, 1) ? 0 : 1);
    require(code_of(child) == 0, "the child sees what was written before");
  }
  is_over = true;
  ::pthread_join(thread, nullptr);
  std::printf("%d children, with handlers that open files\n", kChildren);
  return 0;
}
