// cancel DIR [BYTES]: threads are cancelled while they touch a mapping, write to the file, and map
// and unmap it. They end at cancellation points of POSIX alone, and what they did is done: nothing
// is left half filled or locked for the others.
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>

#include "program.h"

using namespace program;

namespace {

struct Scene {
  int number = -1;
  uint64_t bytes = 0;
  uint64_t* words = nullptr;
  std::atomic<bool> is_cancelled{false}, is_running{false};
  std::atomic<uint64_t> turns{0};
};
Scene scene;

// Each is cancelled while it runs, and ends where it asks for it.
void* touch(void*) {
  uint64_t sum = 0;
  for (scene.is_running = true; !scene.is_cancelled;)
    for (uint64_t page = 0; page < scene.bytes / kPageBytes; ++page)
      sum += scene.words[page * 512 + 1];
  for (uint64_t page = 0; page < scene.bytes / kPageBytes; ++page) {
    scene.words[page * 512 + 2] = 7;  // with the request waiting
    sum += scene.words[page * 512];
  }
  ++scene.turns;
  ::pthread_testcancel();
  return reinterpret_cast<void*>(sum);
}

void* change(void*) {
  scene.is_running = true;
  while (!scene.is_cancelled) ::sched_yield();
  uint64_t* own = map(scene.number, scene.bytes, PROT_READ | PROT_WRITE);
  fill(own, scene.bytes / 8, 4);
  require(::mprotect(own, scene.bytes / 2, PROT_READ) == 0, "mprotect");
  require(::munmap(own + scene.bytes / 16, scene.bytes / 4) == 0, "munmap of a part");
  require(::madvise(own, kPageBytes, MADV_DONTNEED) == 0, "madvise");
  require(::munmap(own, scene.bytes) == 0, "munmap");
  ++scene.turns;
  ::pthread_testcancel();
  return nullptr;
}

// pwrite() is a cancellation point: it may end there, or not.
void* write_file(void*) {
  uint64_t words[512];
  fill(words, 512, 4);
  scene.is_running = true;
  for (;;)
    if (::pwrite(scene.number, words, sizeof words, 0) != sizeof words) ::pthread_testcancel();
}

// Blocked in read() of an empty pipe it must be ended.
void* read_pipe(void* pipe) {
  char byte;
  scene.is_running = true;
  const ssize_t n = ::read(static_cast<int*>(pipe)[0], &byte, 1);
  return reinterpret_cast<void*>(n);
}

// Into the mapping, which may be read through other memory first.
void* read_pipe_into_mapping(void* pipe) {
  scene.is_running = true;
  const ssize_t n = ::read(static_cast<int*>(pipe)[0], scene.words, 8);
  return reinterpret_cast<void*>(n);
}

// May be ended anywhere, in the middle of a touch, too.
void* touch_anywhere(void*) {
  int ignored = 0;
  ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &ignored);
  scene.is_running = true;
  for (uint64_t sum = 0;;)
    for (uint64_t page = 0; page < scene.bytes / kPageBytes; ++page) {
      sum += scene.words[page * 512 + 1];
      asm volatile("" : : "r"(sum));
    }
}

void run(const char* what, void* (*f)(void*), void* argument, int times, bool has_turns) {
  for (int i = 0; i < times; ++i) {
    scene.is_running = scene.is_cancelled = false;
    const uint64_t turns = scene.turns;
    pthread_t thread;
    require(::pthread_create(&thread, nullptr, f, argument) == 0, "pthread_create");
    while (!scene.is_running) ::sched_yield();
    require(::pthread_cancel(thread) == 0, "pthread_cancel");
    scene.is_cancelled = true;
    void* result = nullptr;
    ::pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) fail("%s: it was not cancelled", what);
    if (has_turns && scene.turns != turns + 1) fail("%s: it was cut off", what);
    // Others find all of it.
    uint64_t sum = 0;
    for (uint64_t page = 0; page < scene.bytes / kPageBytes; ++page)
      sum += scene.words[page * 512 + 3] - word_at(1, page * 512 + 3) != 0 &&
             scene.words[page * 512 + 3] != word_at(4, page * 512 + 3);
    if (sum != 0) fail("%s: wrong bytes", what);
  }
  std::printf("%s: %d threads are cancelled\n", what, times);
}

}  // namespace

int main(int count, char** arguments) {
  scene.bytes = begin(count, arguments, 1 << 21);
  scene.number = make_file("cancel", scene.bytes, 1);
  scene.words = map(scene.number, scene.bytes, PROT_READ | PROT_WRITE);
  int pipe[2];
  require(::pipe(pipe) == 0, "pipe");
  run("touching", touch, nullptr, 20, true);
  run("changing mappings", change, nullptr, 10, true);
  run("writing to the file", write_file, nullptr, 10, false);
  run("reading a pipe", read_pipe, pipe, 2, false);
  run("reading a pipe into the mapping", read_pipe_into_mapping, pipe, 2, false);
  run("touching, cancelled anywhere", touch_anywhere, nullptr, 20, false);
  require(::munmap(scene.words, scene.bytes) == 0, "munmap");
  return 0;
}
