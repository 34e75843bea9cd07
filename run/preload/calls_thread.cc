// Threads of the program, and what it wants called at fork. See calls.h.
#include <pthread.h>
#include <threads.h>

#include <atomic>

#include "run/preload/calls.h"
#include "run/preload/fork.h"
#include "run/preload/program_threads.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {
std::atomic<bool> has_threads{false};
}

namespace outcore::preload {
bool has_program_threads() { return has_threads.load(std::memory_order_acquire); }
}  // namespace outcore::preload

OUTCORE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                  void* (*start)(void*), void* argument) {
  if (!is_inside()) has_threads.store(true, std::memory_order_release);
  return real().pthread_create(thread, attributes, start, argument);
}

OUTCORE_EXPORT int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  if (!is_inside()) has_threads.store(true, std::memory_order_release);
  return real().thrd_create(thread, start, argument);
}

// Ours are the first: so they are the last before fork(), and the first after it.
OUTCORE_EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void),
                                     void (*child)(void), void* library) {
  if (!is_inside()) prepare_fork();
  return real().__register_atfork(prepare, parent, child, library);
}
