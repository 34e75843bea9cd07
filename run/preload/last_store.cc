#include "run/preload/last_store.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "core/base/assert.h"
#include "core/os/wait_limit.h"
#include "run/preload/calls.h"
#include "run/preload/door.h"
#include "run/preload/heap.h"
#include "run/preload/inside.h"
#include "run/preload/real.h"
#include "run/preload/sandbox.h"
#include "run/preload/settings.h"
#include "run/preload/words.h"

namespace outcore::preload {
namespace {

constinit std::atomic<int> owner{0};  // the process whose thread it is; 0: there is none
constinit std::atomic<bool> wants_report{false}, wants_retirement{false}, is_ending{false};
constinit std::atomic<uint32_t> asked{0}, done{0}, progress{0};
constinit std::atomic<uint32_t> attempts{1};       // to end the process
constinit std::atomic<bool> is_all_stored{false};  // in the round that is running

// Allocates nothing.
void say_that_it_cannot_be(const char* why) {
  const char* const text[] = {"outcore: ", why,
                              ": what the program wrote to mapped files since its last msync may "
                              "not be stored\n"};
  for (const char* part : text) say_raw(part, std::strlen(part));
}

void* store_whenever_asked(void*) {
  become_ours("outcore-end");
  for (;;) {
    const uint32_t now = asked.load(std::memory_order_acquire);
    if (now == done.load(std::memory_order_relaxed)) {
      os::wait(&asked, now, 1'000'000'000);
      continue;
    }
    is_all_stored.store(false);
    try {
      Door::instance().store_all();
      is_all_stored.store(true);
      LastStore::note_progress();
      Door::instance().keep_learnt();
      LastStore::note_progress();
      if (wants_report.exchange(false)) publish(Door::instance().report());
      if (wants_retirement.exchange(false)) Heap::retire();
    } catch (const std::bad_alloc&) {
      say_that_it_cannot_be("no memory is left");
    }
    done.store(now, std::memory_order_release);
    os::wake_all(&done);
  }
  return nullptr;
}

bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

// Allocates nothing.
void say_that_it_is_stuck(uint64_t seconds) {
  char text[200];
  const char* const what =
      is_all_stored.load() ? "what was learnt could not be kept, or the report not be made, at "
                             "the end of the program: it"
                           : "what the program wrote to mapped files could not be stored at its "
                             "end: storing";
  const int n =
      std::snprintf(text, sizeof text, "outcore: %s did not go on for %lu s\n", what, seconds);
  OC_ASSERT(n > 0 && static_cast<size_t>(n) < sizeof text);
  say_raw(text, static_cast<size_t>(n));
}

}  // namespace

bool LastStore::start() {
  if (is_there()) return true;
  constexpr size_t kStackBytes = 1 << 20;
  const Inside inside;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return false;
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  int error = ::pthread_create(&thread, &attributes, store_whenever_asked, nullptr);
  if (error == EINVAL) {  // the program's thread-local memory alone is larger than the stack
    ::pthread_attr_destroy(&attributes);
    if (::pthread_attr_init(&attributes) != 0) return false;
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    error = ::pthread_create(&thread, &attributes, store_whenever_asked, nullptr);
  }
  ::pthread_attr_destroy(&attributes);
  if (error == 0) owner.store(::getpid());
  return error == 0;
}

void LastStore::run(What what) {
  if (are_all_restricted() || !is_there()) return;
  // This library itself was interrupted: the thread may hold a lock that storing needs.
  if (is_inside()) return say_that_it_cannot_be("the process ends within Outcore");
  const int saved_errno = errno;
  is_ending.store(true);
  if (what == What::kStoreAndReport) wants_report.store(true);
  if (what == What::kStoreAndRetire) wants_retirement.store(true);
  const uint32_t ticket = asked.fetch_add(1, std::memory_order_acq_rel) + 1;
  os::wake_all(&asked);
  const uint64_t patience_s = settings().patience_s;
  os::WaitLimit limit(patience_s * 1'000'000'000);
  uint32_t seen_progress = progress.load();
  for (uint32_t seen = done.load(); is_before(seen, ticket); seen = done.load()) {
    os::wait(&done, seen, 100'000'000);
    if (are_all_restricted()) return;  // another thread did so meanwhile
    if (const uint32_t now = progress.load(); now != seen_progress) {
      seen_progress = now;
      limit = os::WaitLimit(patience_s * 1'000'000'000);
    }
    if (!limit.is_over()) continue;
    say_that_it_is_stuck(patience_s);
    break;
  }
  errno = saved_errno;
}

void LastStore::store_and_report() {
  if (is_there()) return run(What::kStoreAndReport);
  static_cast<void>(is_ready([] {
    Door& door = Door::instance();
    door.store_all();
    door.keep_learnt();
    publish(door.report());
  }));
}

bool LastStore::is_there() { return owner.load() == ::getpid(); }

bool LastStore::has_begun() { return is_ending.load(); }

void LastStore::resume() {
  is_ending.store(false);
  note_attempt_over();
}

uint32_t LastStore::attempt() { return attempts.load(std::memory_order_relaxed); }
void LastStore::note_attempt_over() { attempts.fetch_add(1, std::memory_order_relaxed); }

void LastStore::note_progress() { progress.fetch_add(1, std::memory_order_relaxed); }

void LastStore::forget_in_child() {
  owner.store(0);
  is_ending.store(false);
}

}  // namespace outcore::preload
