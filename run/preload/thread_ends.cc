// The destructors of this library's thread-local objects. The linker's --wrap sends their
// registration here (cmake/preload.cmake): the C library would note them in the program's heap,
// which the very thread that faults may have locked, and it ends the process if that heap has no
// memory.
#include <pthread.h>

#include "run/preload/own_memory.h"

namespace outcore::preload {
namespace {

struct End {
  void (*run)(void*);
  void* object;
  End* next;
};

constinit thread_local End* ends = nullptr;

// Runs the latest first. A destructor may register more.
void run_all(void*) {
  while (ends != nullptr) {
    End* const end = ends;
    ends = end->next;
    end->run(end->object);
    OwnMemory::release(end);
  }
}

// -1: the system has no key left, and no destructor runs when a thread ends.
int key_once() {
  static const int key = [] {
    pthread_key_t made = 0;
    return ::pthread_key_create(&made, run_all) == 0 ? static_cast<int>(made) : -1;
  }();
  return key;
}

}  // namespace
}  // namespace outcore::preload

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this folder

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's name
// The main thread's destructors are not run: that thread ends with the process.
extern "C" int __wrap___cxa_thread_atexit(void (*run)(void*), void* object, void*) {
  auto* const end = static_cast<End*>(OwnMemory::allocate(sizeof(End), 16));
  if (end == nullptr) return 0;  // the object is never destroyed
  *end = {run, object, ends};
  ends = end;
  if (const int key = key_once(); key >= 0)
    ::pthread_setspecific(static_cast<pthread_key_t>(key), &ends);
  return 0;
}
// NOLINTEND(bugprone-reserved-identifier)
