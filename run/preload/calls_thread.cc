// Threads of the program, and its handlers for fork(). See calls.h.
#include <pthread.h>
#include <threads.h>

#include <atomic>
#include <new>

#include "run/preload/alt_stack.h"
#include "run/preload/calls.h"
#include "run/preload/fork.h"
#include "run/preload/program_threads.h"
#include "run/preload/ranges.h"
#include "run/preload/sandbox.h"
#include "run/preload/window.h"

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

namespace {
std::atomic<bool> has_threads{false};
}

namespace outcore::preload {
bool has_program_threads() { return has_threads.load(std::memory_order_acquire); }
}  // namespace outcore::preload

namespace {

// What a thread of the program begins with, where it may have to answer its own faults.
template <typename Function>
struct Start {
  Function function;
  void* argument;
};

// Nothing here has a destructor that would run when the thread is unwound.
template <typename Result, typename Function>
Result begin_thread(void* given) {
  auto* const start = static_cast<Start<Function>*>(given);
  const Function function = start->function;
  void* const argument = start->argument;
  delete start;
  // Its mask may block these signals: the C library may have set it, or it comes from a creator
  // that set its own before we kept them unblocked.
  if (!are_all_restricted()) {
    let_faults_come();
    AltStack::provide();
  }
  return function(argument);
}

// nullptr: the thread begins in the program's function, without ours.
template <typename Function>
Start<Function>* new_start(Function function, void* argument) {
  if (is_inside() || !Window::is_offered() || are_all_restricted() || is_borrowing())
    return nullptr;
  return new (std::nothrow) Start<Function>{function, argument};
}

// The stack that the program gives to a thread; its size is 0 if the C library makes one.
int leave_stack_of(const pthread_attr_t* attributes) {
  void* stack = nullptr;
  size_t size = 0;
  const bool has_some = attributes != nullptr && !is_inside() && !are_all_restricted() &&
                        ::pthread_attr_getstack(attributes, &stack, &size) == 0;
  return has_some ? leave_stack(stack, size) : 0;
}

}  // namespace

OUTCORE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                  void* (*start)(void*), void* argument) {
  if (!is_inside()) has_threads.store(true, std::memory_order_release);
  if (leave_stack_of(attributes) != 0) return EAGAIN;
  auto* const begin = new_start(start, argument);
  if (begin == nullptr) return real().pthread_create(thread, attributes, start, argument);
  const int error =
      real().pthread_create(thread, attributes, begin_thread<void*, void* (*)(void*)>, begin);
  if (error != 0) delete begin;
  return error;
}

OUTCORE_EXPORT int thrd_create(thrd_t* thread, thrd_start_t start, void* argument) {
  if (!is_inside()) has_threads.store(true, std::memory_order_release);
  auto* const begin = new_start(start, argument);
  if (begin == nullptr) return real().thrd_create(thread, start, argument);
  const int result = real().thrd_create(thread, begin_thread<int, thrd_start_t>, begin);
  if (result != thrd_success) delete begin;
  return result;
}

// Our handlers are registered first: so they are called last before fork(), and first after it.
OUTCORE_EXPORT int __register_atfork(void (*prepare)(void), void (*parent)(void),
                                     void (*child)(void), void* library) {
  if (!is_inside()) prepare_fork();
  return real().__register_atfork(prepare, parent, child, library);
}
