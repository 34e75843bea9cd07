#include "heaps/volatile/thread_cache.h"

#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "core/base/assert.h"
#include "core/os/at_fork.h"
#include "heaps/volatile/allocator.h"

namespace outcore::heap::thread_caches {

thread_local constinit Near near[kNear] = {};

namespace {

// All allocators, by number. Never destroyed: threads may end after static objects are destroyed.
struct Registry {
  std::mutex mutex;
  std::map<uint64_t, Allocator*> allocators;
  uint64_t next_number = 1;
  std::atomic<uint64_t> parents_end{0};  // smaller numbers belong to a parent of this process
};

Registry& registry() {
  static Registry* const all = [] {
    os::at_fork(
        os::ForkOrder::kHeapThreads, [] { registry().mutex.lock(); },
        [] { registry().mutex.unlock(); },
        [] {
          Registry& r = registry();
          r.parents_end.store(r.next_number, std::memory_order_relaxed);
          for (Near& entry : near) entry = {};
          r.mutex.unlock();
        });
    return new Registry;
  }();
  return *all;
}

thread_local constinit bool is_ending = false;
thread_local constinit bool is_making = false;  // the program's operator new may use a heap

// leave() waits until the allocator is released. nullptr: it has ended, or is a parent's.
Allocator* find_and_hold(uint64_t number) {
  Registry& r = registry();
  const std::lock_guard<std::mutex> guard(r.mutex);
  if (number < r.parents_end.load(std::memory_order_relaxed)) return nullptr;
  const auto found = r.allocators.find(number);
  if (found == r.allocators.end()) return nullptr;
  found->second->ending_threads.fetch_add(1, std::memory_order_relaxed);
  return found->second;
}

// All caches of the thread. They are returned when it ends.
struct Own {
  std::vector<Near> caches;
  ~Own() {
    is_ending = true;
    for (Near& entry : near) entry = {};
    for (const Near& entry : caches)
      if (Allocator* const owner = find_and_hold(entry.number); owner != nullptr) {
        owner->detach_cache(entry.cache);
        owner->ending_threads.fetch_sub(1, std::memory_order_release);
        owner->ending_threads.notify_all();
      }
  }
};
thread_local Own own;

}  // namespace

ThreadCache* far(Allocator& allocator, uint64_t number) {
  if (is_ending || is_making || is_parents(number)) return nullptr;
  Near& entry = near[number % kNear];
  for (const Near& known : own.caches)
    if (known.number == number) {
      entry = known;
      return known.cache;
    }
  // Entries of allocators that have ended make room.
  {
    Registry& r = registry();
    const std::lock_guard<std::mutex> guard(r.mutex);
    std::erase_if(own.caches, [&](const Near& n) { return !r.allocators.contains(n.number); });
  }
  ThreadCache* const made = allocator.attach_cache();
  if (made == nullptr) return nullptr;
  is_making = true;
  try {
    own.caches.push_back({number, made});
  } catch (const std::bad_alloc&) {
    is_making = false;
    allocator.detach_cache(made);
    return nullptr;
  }
  is_making = false;
  entry = {number, made};
  return made;
}

uint64_t enter(Allocator& allocator) {
  Registry& r = registry();
  const std::lock_guard<std::mutex> guard(r.mutex);
  r.allocators[r.next_number] = &allocator;
  return r.next_number++;
}

void leave(Allocator& allocator, uint64_t number) {
  Registry& r = registry();
  {
    const std::lock_guard<std::mutex> guard(r.mutex);
    OC_CHECK(r.allocators.contains(number));
    r.allocators.erase(number);
  }
  if (is_parents(number)) return;
  while (const unsigned ending = allocator.ending_threads.load(std::memory_order_acquire))
    allocator.ending_threads.wait(ending, std::memory_order_acquire);
}

bool is_parents(uint64_t number) {
  return number < registry().parents_end.load(std::memory_order_relaxed);
}

}  // namespace outcore::heap::thread_caches
