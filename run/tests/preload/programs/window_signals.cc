// window_signals DIR [CASE]: signals during calls whose arguments lie in a mapping: waits go on
// where SA_RESTART says so, handlers may jump out of a call, touch what only another handler opens,
// use much stack, and change the mask that is in force afterwards.
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <sys/time.h>
#include <ucontext.h>

#include "window_cases.h"

using namespace program;

namespace {

Mapped file;
std::atomic<int> handled{0};
std::atomic<bool> is_over{false};
std::atomic<pid_t> waiter{0};
pthread_t waiting_thread;

void set_handler(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  require(::sigaction(signal, &action, nullptr) == 0, "sigaction");
}

void count_signal(int) { handled.fetch_add(1); }

// To the waiting thread, when it sleeps, until that many came, or it waits no more.
void send_signals(int times) {
  for (int before = handled; before < times && !is_over; before = handled) {
    wait_until_asleep(waiter);
    if (is_over) return;
    ::pthread_kill(waiting_thread, SIGUSR1);
    while (handled == before && !is_over) ::sched_yield();
  }
}
constexpr int kUntilOver = 1 << 30;

void begin_to_wait() {
  handled = 0;
  is_over = false;
  waiting_thread = ::pthread_self();
  waiter = thread_id();
}

pthread_t start(void* (*f)(void*), void* argument = nullptr) {
  pthread_t thread;
  require(::pthread_create(&thread, nullptr, f, argument) == 0, "pthread_create");
  return thread;
}

// -- waits that go on --

void* post_after_signals(void* semaphore) {
  send_signals(2);
  ::sem_post(static_cast<sem_t*>(semaphore));
  return nullptr;
}

void wait_for_semaphore() {
  file = map_new_file();
  auto* const semaphore = file.as<sem_t>(kC);
  require(::sem_init(semaphore, 1, 0) == 0, "sem_init");
  set_handler(SIGUSR1, count_signal, SA_RESTART);
  begin_to_wait();
  file.evict();
  const pthread_t other = start(post_after_signals, semaphore);
  require(::sem_wait(semaphore) == 0, "sem_wait goes on after a handler with SA_RESTART");
  is_over = true;
  ::pthread_join(other, nullptr);
  require(handled == 2, "it waited until it was posted");
}

// The word stays what it is: whoever waits wakes by this alone.
void* wake_after_signals(void* word) {
  send_signals(2);
  while (!is_over) {
    call_raw(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE, 1);
    ::sched_yield();
  }
  return nullptr;
}

void wait_for_futex() {
  file = map_new_file();
  auto* const word = file.as<int>(kC);
  *word = 7;
  set_handler(SIGUSR1, count_signal, SA_RESTART);
  begin_to_wait();
  file.evict();
  const pthread_t other = start(wake_after_signals, word);
  const long result = call_raw(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT, 7);
  is_over = true;
  ::pthread_join(other, nullptr);
  if (result != 0) fail("FUTEX_WAIT is %ld after handlers with SA_RESTART", result);
  require(handled >= 2, "it waited until it was woken");
}

void* send_until_over(void*) {
  send_signals(kUntilOver);
  return nullptr;
}

// With a limit that is far.
long wait_with_limit(int* word) {
  *word = 7;
  begin_to_wait();
  timespec limit{};
  ::clock_gettime(CLOCK_MONOTONIC, &limit);
  limit.tv_sec += 1000;
  const pthread_t other = start(send_until_over);
  const long result =
      call_raw(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT_BITSET, 7,
               reinterpret_cast<long>(&limit), 0, static_cast<long>(FUTEX_BITSET_MATCH_ANY));
  is_over = true;
  ::pthread_join(other, nullptr);
  return result;
}

int wait_for_semaphore_with_limit(sem_t* semaphore) {
  require(::sem_init(semaphore, 1, 0) == 0, "sem_init");
  begin_to_wait();
  timespec limit{};
  ::clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec += 1000;
  const pthread_t other = start(send_until_over);
  const int result = ::sem_timedwait(semaphore, &limit) == 0 ? 0 : errno;
  is_over = true;
  ::pthread_join(other, nullptr);
  return result;
}

void wait_with_limits() {
  file = map_new_file();
  static int plain_word;
  static sem_t plain;
  for (const int flags : {0, SA_RESTART}) {
    set_handler(SIGUSR1, count_signal, flags);
    const long wanted = wait_with_limit(&plain_word);
    const long found = wait_with_limit(file.as<int>(kC));
    if (wanted != found) fail("FUTEX_WAIT_BITSET is %ld, on plain memory %ld", found, wanted);
    const int wanted_error = wait_for_semaphore_with_limit(&plain);
    const int error = wait_for_semaphore_with_limit(file.as<sem_t>(kC + 64));
    if (error != wanted_error) fail("sem_timedwait: error %d, not %d", error, wanted_error);
  }
}

// -- jumps, and faults within faults --

sigjmp_buf back;
volatile bool is_armed = false;
volatile int opened = 0, begun = 0, ended = 0;
volatile unsigned char* closed = nullptr;
constexpr size_t kReadBytes = 64 << 10;

void jump(int) {
  if (!is_armed) return;
  is_armed = false;
  siglongjmp(back, 1);
}

void open_closed(int, siginfo_t* info, void*) {
  opened = opened + 1;
  if (info->si_addr != closed + 5) ::_exit(4);  // none that it can mend
  ::mprotect(const_cast<unsigned char*>(closed), kPageBytes, PROT_READ | PROT_WRITE);
}

void close_page() {
  require(::mprotect(const_cast<unsigned char*>(closed), kPageBytes, PROT_NONE) == 0, "mprotect");
}

void touch_closed(int) {
  begun = begun + 1;
  ::mprotect(const_cast<unsigned char*>(closed), kPageBytes, PROT_NONE);
  closed[5] = 1;
  ended = ended + 1;
}

void set_alarm(long after_us) {
  const itimerval after{{0, 0}, {0, after_us}};
  require(::setitimer(ITIMER_REAL, &after, nullptr) == 0, "setitimer");
}

[[gnu::noinline]] int overwrite_stack(int depth) {
  volatile char bytes[256];
  for (volatile char& byte : bytes) byte = static_cast<char>(depth);
  return depth != 0 ? overwrite_stack(depth - 1) + bytes[3] : bytes[1];
}

int begin_to_read(void (*on_alarm)(int)) {
  file = map_new_file();
  closed = static_cast<unsigned char*>(
      ::mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  require(closed != MAP_FAILED, "mmap");
  set_handler(SIGALRM, on_alarm, 0);
  struct sigaction action {};
  action.sa_sigaction = open_closed;
  action.sa_flags = SA_SIGINFO;
  require(::sigaction(SIGSEGV, &action, nullptr) == 0, "sigaction");
  const int zeros = ::open("/dev/zero", O_RDONLY);
  require(zeros >= 0, "open of /dev/zero");
  return zeros;
}

unsigned char* place_of(int turn) {
  return file.m + static_cast<uint64_t>(turn) * 7919 * kPageBytes % (kMappedBytes - kReadBytes);
}

void jump_out() {
  const int zeros = begin_to_read(jump);
  static int turn;  // a jump does not take it back
  for (turn = 0; turn < 2000; ++turn) {
    if (sigsetjmp(back, 1) == 0) {
      is_armed = true;
      set_alarm(20 + turn % 300);
      const ssize_t n = ::read(zeros, place_of(turn), kReadBytes);
      is_armed = false;
      if (n < 0 && errno != EINTR) fail("read into the mapping in turn %d", turn);
    }
    set_alarm(0);
    overwrite_stack(20);
    close_page();
    const int before = opened;
    closed[5] = 1;
    if (opened != before + 1) fail("in turn %d no handler of SIGSEGV was called", turn);
  }
  set_alarm(0);
  for (uint64_t at = 0; at < kMappedBytes; at += kPageBytes) file.m[at] = 3;
  require(file.sum() == static_cast<long>(3 * kMappedBytes / kPageBytes), "what is written stays");
}

void fault_in_handler() {
  const int zeros = begin_to_read(touch_closed);
  for (int turn = 0; turn < 2000; ++turn) {
    set_alarm(20 + turn % 300);
    const ssize_t n = ::read(zeros, place_of(turn), kReadBytes);
    if (n < 0 && errno != EINTR) fail("read into the mapping in turn %d", turn);
    set_alarm(0);
    if (begun != ended) fail("in turn %d: %d handlers began, %d ended", turn, begun, ended);
    if (begun != opened) fail("in turn %d: %d handlers, %d faults", turn, begun, opened);
  }
}

// -- handlers that use much stack --

[[gnu::noinline]] void use_stack() {
  volatile char locals[200 << 10];
  for (size_t i = sizeof locals; i > 0; i -= 512) locals[i - 1] = 1;
}
void handle_deeply(int) {
  use_stack();
  handled.fetch_add(1);
}

void* raise_deep(void*) {
  require(*file.at(kMappedBytes / 2) == (word_at(1, kMappedBytes / 16) & 0xff), "a page");
  const int before = handled;
  ::raise(SIGUSR1);
  require(handled == before + 1, "the handler was called");
  return nullptr;
}

void handle_without_stack() {
  file = map_new_file();
  set_handler(SIGUSR1, handle_deeply, SA_ONSTACK);
  raise_deep(nullptr);
  ::pthread_join(start(raise_deep), nullptr);
}

void poll_interrupted(int flags) {
  file = map_new_file();
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  set_handler(SIGUSR1, handle_deeply, flags);
  begin_to_wait();
  *file.as<pollfd>(kC) = {ends[0], POLLIN, 0};
  file.evict();
  const pthread_t other = start(send_until_over);
  const int result = ::poll(file.as<pollfd>(kC), 1, -1), error = errno;
  is_over = true;
  ::pthread_join(other, nullptr);
  require(result == -1 && error == EINTR && handled > 0, "a handler interrupts poll");
  require_works(file);
}
void poll_deep() { poll_interrupted(0); }
void poll_deep_on_none() { poll_interrupted(SA_ONSTACK); }

void* write_after_signals(void* end) {
  send_signals(2);
  require(::write(*static_cast<int*>(end), "w", 1) == 1, "write");
  return nullptr;
}

void read_deep() {
  file = map_new_file();
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  hand_back(file);
  set_handler(SIGUSR1, handle_deeply, SA_RESTART);
  begin_to_wait();
  const pthread_t other = start(write_after_signals, &ends[1]);
  require(::read(ends[0], file.at(kA), 100) == 1, "read goes on after the handlers");
  is_over = true;
  ::pthread_join(other, nullptr);
  require(*file.at(kA) == 'w' && handled == 2, "and reads what comes");
}

// -- the mask --

void change_mask(int, siginfo_t*, void* context) {
  sigaddset(&static_cast<ucontext_t*>(context)->uc_sigmask, SIGUSR2);
  sigdelset(&static_cast<ucontext_t*>(context)->uc_sigmask, SIGWINCH);
  handled.fetch_add(1);
}

void keep_mask() {
  file = map_new_file();
  int ends[2];
  require(::pipe(ends) == 0, "pipe");
  struct sigaction action {};
  action.sa_sigaction = change_mask;
  action.sa_flags = SA_SIGINFO;
  require(::sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGWINCH);
  require(::pthread_sigmask(SIG_SETMASK, &mask, nullptr) == 0, "pthread_sigmask");
  begin_to_wait();
  *file.as<pollfd>(kC) = {ends[0], POLLIN, 0};
  file.evict();
  const pthread_t other = start(send_until_over);
  require(::poll(file.as<pollfd>(kC), 1, -1) == -1 && errno == EINTR, "poll is interrupted");
  is_over = true;
  ::pthread_join(other, nullptr);
  require(::pthread_sigmask(SIG_BLOCK, nullptr, &mask) == 0, "pthread_sigmask");
  require(sigismember(&mask, SIGUSR2) == 1, "what the handler blocks in uc_sigmask is blocked");
  require(sigismember(&mask, SIGWINCH) == 0, "what it unblocks there is not");
}

const Case kCases[] = {
    {"semaphore", wait_for_semaphore},
    {"futex", wait_for_futex},
    {"limits", wait_with_limits},
    {"jump-out", jump_out},
    {"fault-in-handler", fault_in_handler},
    {"deep-on-no-stack", handle_without_stack},
    {"deep-in-poll", poll_deep},
    {"deep-in-poll-on-no-stack", poll_deep_on_none},
    {"deep-in-read", read_deep},
    {"mask", keep_mask},
};

}  // namespace

int main(int count, char** arguments) { return run_cases(count, arguments, kCases); }
