// window_waits DIR [CASE]: threads that wait in calls whose arguments lie in a mapping can be
// cancelled as anywhere, and what they wait for wakes them although its page was evicted meanwhile.
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>

#include "window_cases.h"

using namespace program;

namespace {

Mapped file;
int ends[2];
std::atomic<pid_t> waiter{0};
std::atomic<int> answer{-1};

void begin_case() {
  file = map_new_file();
  require(::pipe(ends) == 0, "pipe");
}

pthread_t start(void* (*f)(void*)) {
  pthread_t thread;
  waiter = 0;
  answer = -1;
  require(::pthread_create(&thread, nullptr, f, nullptr) == 0, "pthread_create");
  return thread;
}

// All pages, so that none of those of before is still there.
void evict_by_touches() {
  file.evict();
  for (uint64_t at = kRoomBytes; at < kMappedBytes; at += kPageBytes) file.m[at + 1] ^= 1;
  for (uint64_t at = kRoomBytes; at < kMappedBytes; at += kPageBytes) file.m[at + 1] ^= 1;
  file.evict();
}

// -- cancelled --

void cancel(void* (*f)(void*)) {
  file.evict();
  const pthread_t thread = start(f);
  wait_until_asleep(waiter);
  require(::pthread_cancel(thread) == 0, "pthread_cancel");
  void* result = nullptr;
  require(::pthread_join(thread, &result) == 0, "pthread_join");
  require(result == PTHREAD_CANCELED, "the thread was cancelled");
  require(answer == -1, "and did not return from its call");
  require_works(file);
}

void* poll_for_ever(void*) {
  *file.as<pollfd>(kA) = {ends[0], POLLIN, 0};
  file.evict();
  waiter = thread_id();
  answer = ::poll(file.as<pollfd>(kA), 1, -1);
  return nullptr;
}

void* read_for_ever(void*) {
  waiter = thread_id();
  answer = static_cast<int>(::read(ends[0], file.at(kA), 100));
  return nullptr;
}

void* wait_for_ever(void*) {
  waiter = thread_id();
  answer = ::sem_wait(file.as<sem_t>(kC));
  return nullptr;
}

void cancel_poll() {
  begin_case();
  for (int times = 0; times < 3; ++times) cancel(poll_for_ever);
}

void cancel_read() {
  begin_case();
  for (int times = 0; times < 3; ++times) cancel(read_for_ever);
}

void cancel_read_of_handed_back() {
  begin_case();
  hand_back(file);
  for (int times = 0; times < 3; ++times) cancel(read_for_ever);
}

void cancel_semaphore() {
  begin_case();
  require(::sem_init(file.as<sem_t>(kC), 1, 0) == 0, "sem_init");
  for (int times = 0; times < 3; ++times) cancel(wait_for_ever);
  require(::sem_post(file.as<sem_t>(kC)) == 0 && ::sem_trywait(file.as<sem_t>(kC)) == 0,
          "the semaphore works on");
}

// -- woken --

pthread_mutex_t* mutex() { return file.as<pthread_mutex_t>(kC); }

void make_mutex(int protocol) {
  pthread_mutexattr_t attributes;
  require(::pthread_mutexattr_init(&attributes) == 0, "pthread_mutexattr_init");
  ::pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setprotocol(&attributes, protocol);
  require(::pthread_mutex_init(mutex(), &attributes) == 0, "pthread_mutex_init");
}

void* lock_and_unlock(void*) {
  waiter = thread_id();
  answer = ::pthread_mutex_lock(mutex());
  if (answer == 0) answer = ::pthread_mutex_unlock(mutex());
  return nullptr;
}

void wait_for_mutex(int protocol) {
  begin_case();
  make_mutex(protocol);
  for (int times = 0; times < 3; ++times) {
    file.evict();
    require(::pthread_mutex_lock(mutex()) == 0, "pthread_mutex_lock");
    const pthread_t thread = start(lock_and_unlock);
    wait_until_asleep(waiter);
    evict_by_touches();
    require(answer == -1, "who waits has no mutex");
    require(::pthread_mutex_unlock(mutex()) == 0, "pthread_mutex_unlock");
    ::pthread_join(thread, nullptr);
    if (answer != 0) fail("who waited got error %d", answer.load());
  }
  require_works(file);
}

// A number that another thread waits for, and the condition that tells of it.
pthread_cond_t* condition() { return file.as<pthread_cond_t>(kC + 2 * kPageBytes); }

void* wait_for_number(void*) {
  require(::pthread_mutex_lock(mutex()) == 0, "pthread_mutex_lock");
  waiter = thread_id();
  while (*file.as<long>(kD) == 0)
    require(::pthread_cond_wait(condition(), mutex()) == 0, "pthread_cond_wait");
  require(::pthread_mutex_unlock(mutex()) == 0, "pthread_mutex_unlock");
  answer = 0;
  return nullptr;
}

void wait_for_condition() {
  begin_case();
  make_mutex(PTHREAD_PRIO_NONE);
  pthread_condattr_t attributes;
  require(::pthread_condattr_init(&attributes) == 0, "pthread_condattr_init");
  ::pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  require(::pthread_cond_init(condition(), &attributes) == 0, "pthread_cond_init");
  for (int times = 0; times < 3; ++times) {
    *file.as<long>(kD) = 0;
    file.evict();
    const pthread_t thread = start(wait_for_number);
    wait_until_asleep(waiter);
    evict_by_touches();
    require(::pthread_mutex_lock(mutex()) == 0, "pthread_mutex_lock");
    *file.as<long>(kD) = 1;
    require(::pthread_cond_signal(condition()) == 0, "pthread_cond_signal");
    require(::pthread_mutex_unlock(mutex()) == 0, "pthread_mutex_unlock");
    ::pthread_join(thread, nullptr);
    require(answer == 0, "who waited was woken");
  }
  require_works(file);
}

// The file becomes the kernel's while somebody waits.
void wait_through_hand_back() {
  begin_case();
  require(::sem_init(file.as<sem_t>(kC), 1, 0) == 0, "sem_init");
  file.evict();
  const pthread_t thread = start(wait_for_ever);
  wait_until_asleep(waiter);
  hand_back(file);
  require(answer == -1, "nobody has posted yet");
  require(::sem_post(file.as<sem_t>(kC)) == 0, "sem_post");
  ::pthread_join(thread, nullptr);
  require(answer == 0, "who waited was woken");
}

// Two threads that add to a number, while a third evicts.
std::atomic<int> left{0};
constexpr int kTurns = 500;

void* add(void*) {
  for (int i = 0; i < kTurns; ++i) {
    require(::pthread_mutex_lock(mutex()) == 0, "pthread_mutex_lock");
    *file.as<long>(kD) = *file.as<long>(kD) + 1;
    if (i % 64 == 0) ::sched_yield();
    require(::pthread_mutex_unlock(mutex()) == 0, "pthread_mutex_unlock");
  }
  --left;
  return nullptr;
}

void contend(int protocol) {
  begin_case();
  make_mutex(protocol);
  *file.as<long>(kD) = 0;
  left = 2;
  const pthread_t first = start(add), second = start(add);
  while (left != 0) evict_by_touches();
  ::pthread_join(first, nullptr);
  ::pthread_join(second, nullptr);
  require(*file.as<long>(kD) == 2 * kTurns, "nobody adds beside another");
}

const Case kCases[] = {
    {"cancel-poll", cancel_poll},
    {"cancel-read", cancel_read},
    {"cancel-read-handed-back", cancel_read_of_handed_back},
    {"cancel-semaphore", cancel_semaphore},
    {"mutex", [] { wait_for_mutex(PTHREAD_PRIO_NONE); }},
    {"inheriting-mutex", [] { wait_for_mutex(PTHREAD_PRIO_INHERIT); }},
    {"condition", wait_for_condition},
    {"semaphore-handed-back", wait_through_hand_back},
    {"contended-mutex", [] { contend(PTHREAD_PRIO_NONE); }},
    {"contended-inheriting-mutex", [] { contend(PTHREAD_PRIO_INHERIT); }},
};

}  // namespace

int main(int count, char** arguments) { return run_cases(count, arguments, kCases); }
