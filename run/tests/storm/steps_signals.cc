// Steps with signals, timers, threads that are cancelled or blocked, and transfers that the C
// library makes by threads of its own.
#include <aio.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "own.h"
#include "steps.h"

namespace storm {

namespace {

// What a handler, or a thread of a moment, writes: by memory and by a descriptor, again and again
// the same.
struct Work {
  Window* window;
  uint64_t offset;
  uint64_t count;
  Descriptor* descriptor;
  uint64_t at;
  uint64_t written;
  uint8_t* bytes;
};
Work work;

bool pick_work(uint64_t count_max) {
  work = {};
  work.bytes = scratch();
  random.fill(work.bytes, count_max);
  Window* w = pick_window_with(PROT_READ | PROT_WRITE);
  if (w != nullptr) {
    const uint64_t there = bytes_within(*w);
    work.window = w;
    work.offset = random.below(there);
    work.count = random.size(there - work.offset);
    if (work.count > count_max) work.count = count_max;
    say_window(*w);
  }
  Descriptor* d = pick_descriptor(false, true);
  if (d != nullptr && !d->is_appending && stage->file[d->file].size > 0 &&
      (w == nullptr || w->file != d->file)) {
    const uint64_t size = stage->file[d->file].size;
    work.descriptor = d;
    work.at = random.below(size);
    work.written = random.size(size - work.at);
    if (work.written > count_max) work.written = count_max;
    say(" d%u f%u", index_of(*d), d->file);
  }
  return work.window != nullptr || work.descriptor != nullptr;
}

void do_work() {
  if (work.window != nullptr) std::memcpy(work.window->base + work.offset, work.bytes, work.count);
  if (work.descriptor == nullptr) return;
  const ssize_t n =
      ::pwrite(work.descriptor->number, work.bytes, work.written, static_cast<off_t>(work.at));
  if (n != static_cast<ssize_t>(work.written))
    mismatch("pwrite beside gave %zd, errno %d", n, errno);
}

void note_work() {
  if (work.window != nullptr) note_written(*work.window, work.offset, work.bytes, work.count);
  if (work.descriptor != nullptr)
    write_model(work.descriptor->file, work.at, work.bytes, work.written);
}

std::atomic<uint32_t> handled{0};

void on_signal(int) {
  const int before = errno;
  do_work();
  ++handled;
  errno = before;
}

void on_tick(int) { ++handled; }

void* block_in_splice(void* ends) {
  const int* numbers = static_cast<int*>(ends);
  off_t at = static_cast<off_t>(work.at);
  const ssize_t n = ::splice(numbers[0], nullptr, work.descriptor->number, &at, work.written, 0);
  if (n != static_cast<ssize_t>(work.written)) mismatch("splice gave %zd, errno %d", n, errno);
  return nullptr;
}

// Runs until it is cancelled: at the calls that POSIX names, or anywhere in its touches.
std::atomic<uint32_t> rounds{0};
void* work_until_cancelled(void* is_anywhere) {
  int before;
  if (is_anywhere != nullptr) ::pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before);
  for (;;) {
    if (is_anywhere != nullptr) {
      std::memcpy(work.window->base + work.offset, work.bytes, work.count);
    } else {
      do_work();
      if (work.window != nullptr) {
        auto* page = reinterpret_cast<uint8_t*>(
            reinterpret_cast<uint64_t>(work.window->base + work.offset) & ~(kPageBytes - 1));
        ::msync(page, kPageBytes, MS_SYNC);
        ::madvise(page, kPageBytes, MADV_WILLNEED);
      }
      ::pthread_testcancel();
    }
    ++rounds;
  }
}

}  // namespace

// A handler that touches memory and writes a file, on the thread's stack or one of its own.
void step_signal() {
  if (!pick_work(4096)) return say(" nothing");
  static uint8_t stack[64 * 1024];
  const bool is_apart = random.chance(50);
  const int signal = random.chance(50) ? SIGUSR1 : SIGRTMIN + 3;
  say(" %s", is_apart ? "on a stack of its own" : "here");
  stack_t there = {stack, 0, sizeof stack}, before;
  ::sigaltstack(&there, &before);
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART | (is_apart ? SA_ONSTACK : 0);
  ::sigaction(signal, &action, nullptr);
  handled = 0;
  const uint64_t times = 1 + random.below(3);
  for (uint64_t i = 0; i < times; ++i)
    expect(random.chance(50) ? ::raise(signal) : ::pthread_kill(::pthread_self(), signal), 0,
           "raise");
  answer(handled, static_cast<long>(times));
  before.ss_flags = SS_DISABLE;
  ::sigaltstack(&before, nullptr);
  note_work();
}

// Work that a timer interrupts again and again.
void step_timer() {
  if (!pick_work(64 * 1024)) return say(" nothing");
  struct sigaction action = {};
  action.sa_handler = on_tick;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGVTALRM, &action, nullptr);
  ::sigaction(SIGALRM, &action, nullptr);
  handled = 0;
  itimerval soon = {{0, 100}, {0, 100}};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  // At least once: all ticks may come before this thread has a processor.
  do do_work();
  while (handled < 5);
  soon = {};
  ::setitimer(ITIMER_REAL, &soon, nullptr);
  note_work();
  observe();
}

void step_cancel() {
  if (!pick_work(16 * 1024)) return say(" nothing");
  bool is_anywhere = random.chance(30) && work.window != nullptr;
  if (is_anywhere) work.descriptor = nullptr;
  say(" %s", is_anywhere ? "anywhere" : "at a point");
  rounds = 0;
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, work_until_cancelled,
                       is_anywhere ? &is_anywhere : nullptr) != 0)
    mismatch("a thread cannot be made: errno %d", errno);
  while (rounds == 0) {
  }
  expect(::pthread_cancel(thread), 0, "pthread_cancel");
  void* result = nullptr;
  expect(::pthread_join(thread, &result), 0, "pthread_join");
  if (result != PTHREAD_CANCELED) mismatch("the thread was not cancelled");
  note_work();
}

// A thread waits within splice() for bytes of a pipe, and others go on meanwhile.
void step_blocked() {
  if (!pick_work(4096) || work.descriptor == nullptr) return say(" nothing");
  work.window = nullptr;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) mismatch("pipe: errno %d", errno);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, block_in_splice, ends) != 0)
    mismatch("a thread cannot be made: errno %d", errno);
  for (unsigned file = 0; file < stage->files; ++file)
    if (file != work.descriptor->file) check_file(file, 0, 8192);
  expect(::write(ends[1], work.bytes, work.written), static_cast<long>(work.written), "write");
  expect(::pthread_join(thread, nullptr), 0, "pthread_join");
  ::close(ends[0]);
  ::close(ends[1]);
  note_work();
}

void step_aio() {
  // The C library's own state of it does not survive a fork.
  if (own.is_forked) return say(" not in a forked child");
  Descriptor* d = pick_descriptor(false, true);
  if (d == nullptr || d->is_appending) return say(" nothing");
  const uint64_t size = stage->file[d->file].size;
  if (size == 0) return say(" nothing");
  const uint64_t at = random.below(size);
  uint64_t count = random.size(size - at);
  if (count > 64 * 1024) count = 64 * 1024;
  say(" d%u f%u at %lu bytes %lu", index_of(*d), d->file, at, count);
  random.fill(scratch(), count);
  aiocb transfer = {};
  transfer.aio_fildes = d->number;
  transfer.aio_buf = scratch();
  transfer.aio_nbytes = count;
  transfer.aio_offset = static_cast<off_t>(at);
  const auto finish = [&transfer](long expected, const char* what) {
    const aiocb* list[] = {&transfer};
    while (::aio_error(&transfer) == EINPROGRESS) ::aio_suspend(list, 1, nullptr);
    expect(::aio_return(&transfer), expected, what);
  };
  expect(::aio_write(&transfer), 0, "aio_write");
  finish(static_cast<long>(count), "what aio_write wrote");
  write_model(d->file, at, scratch(), count);
  for (Window& w : own.windows)
    if (w.is_used && w.file == d->file && (w.prot & PROT_READ) != 0)
      check_window(w, 0, bytes_within(w));
  if (!d->may_read) return;
  transfer.aio_buf = scratch() + kScratchBytes;
  expect(::aio_read(&transfer), 0, "aio_read");
  finish(static_cast<long>(count), "what aio_read read");
  check_bytes(scratch() + kScratchBytes, scratch(), count, "aio_read of f", d->file, at);
}

}  // namespace storm
