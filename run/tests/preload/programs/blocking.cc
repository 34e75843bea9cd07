// blocking DIR [BYTES]: threads that wait in the kernel (for a pipe to be filled, for a FIFO to be
// opened, for a lock on the file) hold nothing up: others open files, map them and write to what
// the waiting ones are to change; and what is waited for has its effect.
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

constexpr uint64_t kAt = 8 * kPageBytes;

struct Wait {
  int from = -1, to = -1;
  std::atomic<int> thread{0};
  ssize_t result = -1;
};

void* splice_into_file(void* argument) {
  auto* wait = static_cast<Wait*>(argument);
  off_t at = kAt;
  wait->thread = static_cast<int>(::syscall(SYS_gettid));
  wait->result = ::splice(wait->from, nullptr, wait->to, &at, kPageBytes, 0);
  return nullptr;
}

void* open_fifo(void* argument) {
  auto* wait = static_cast<Wait*>(argument);
  wait->thread = static_cast<int>(::syscall(SYS_gettid));
  wait->result = ::open("fifo", O_RDONLY);
  return nullptr;
}

void* lock_file(void* argument) {
  auto* wait = static_cast<Wait*>(argument);
  wait->thread = static_cast<int>(::syscall(SYS_gettid));
  wait->result = ::flock(wait->to, LOCK_EX);
  return nullptr;
}

// Until the thread sleeps in the kernel.
void wait_until_asleep(const Wait& wait) {
  while (wait.thread == 0) ::sched_yield();
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/stat", wait.thread.load());
  for (;;) {
    const int number = ::open(path, O_RDONLY);
    const ssize_t n = ::read(number, text, sizeof text - 1);
    ::close(number);
    require(n > 0, "read of a thread's state");
    text[n] = 0;
    const char* state = std::strrchr(text, ')');
    if (state != nullptr && state[2] == 'S') return;
    ::sched_yield();
  }
}

// What others do meanwhile; none of it may wait.
void do_the_rest(uint64_t* words, uint64_t bytes) {
  const int other = make_file("other", bytes, 3);
  uint64_t* mapped = map(other, bytes, PROT_READ | PROT_WRITE);
  require(is_filled(mapped, bytes / 8, 3), "another file is mapped");
  require(::munmap(mapped, bytes) == 0, "munmap");
  ::close(other);
  words[kAt / 8] = 5;
  words[kAt / 8 + 1] = 6;
  require(words[kAt / 8] == 5, "what is to be changed can be written");
}

pthread_t start(void* (*f)(void*), Wait* wait) {
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, f, wait) == 0, "pthread_create");
  wait_until_asleep(*wait);
  return thread;
}

}  // namespace

int main(int count, char** arguments) {
  const uint64_t bytes = begin(count, arguments, 1 << 18);
  const int number = make_file("blocking", bytes, 1);
  uint64_t* words = map(number, bytes, PROT_READ | PROT_WRITE);
  int pipe[2];
  require(::pipe(pipe) == 0, "pipe");
  Wait wait{pipe[0], number};
  pthread_t thread = start(splice_into_file, &wait);
  do_the_rest(words, bytes);
  require(::write(pipe[1], "12345678", 8) == 8, "write");
  ::pthread_join(thread, nullptr);
  require(wait.result == 8 && std::memcmp(words + kAt / 8, "12345678", 8) == 0, "splice");
  require(words[kAt / 8 + 1] == 6, "and no byte beside it is changed");
  ::close(pipe[1]);
  off_t at = kAt;
  require(::splice(pipe[0], nullptr, number, &at, 8, 0) == 0, "splice at the pipe's end");
  std::printf("splice waits alone\n");

  ::unlink("fifo");
  require(::mkfifo("fifo", 0600) == 0, "mkfifo");
  Wait opening;
  thread = start(open_fifo, &opening);
  do_the_rest(words, bytes);
  const int writer = ::open("fifo", O_WRONLY);
  ::pthread_join(thread, nullptr);
  require(writer >= 0 && opening.result >= 0, "open");
  std::printf("open of a FIFO waits alone\n");

  const int holder = ::open("blocking", O_RDWR);
  require(::flock(holder, LOCK_EX) == 0, "flock");
  Wait locking{-1, number};
  thread = start(lock_file, &locking);
  do_the_rest(words, bytes);
  require(::flock(holder, LOCK_UN) == 0, "flock");
  ::pthread_join(thread, nullptr);
  require(locking.result == 0, "flock");
  std::printf("flock waits alone\n");
  return 0;
}
