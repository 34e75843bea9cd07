// What thread-local objects of this library leave to be done when a thread ends. The linker's
// --wrap sends it here (cmake/preload.cmake): the C library would note it in the program's heap,
// which may be locked by the very thread that faults, and ends the process where that heap is
// empty.
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

// The latest first. What runs may note more.
void run_all(void*) {
  while (ends != nullptr) {
    End* const end = ends;
    ends = end->next;
    end->run(end->object);
    OwnMemory::release(end);
  }
}

// -1: the system has no key left, and threads leave what they had behind.
int key_once() {
  static const int key = [] {
    pthread_key_t made = 0;
    return ::pthread_key_create(&made, run_all) == 0 ? static_cast<int>(made) : -1;
  }();
  return key;
}

}  // namespace
}  // namespace outcore::preload

using namespace outcore::preload;  // NOLINT(google-build-using-namespace): names of this room

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's name
// The main thread's are not run: it ends with the process.
extern "C" int __wrap___cxa_thread_atexit(void (*run)(void*), void* object, void*) {
  auto* const end = static_cast<End*>(OwnMemory::allocate(sizeof(End), 16));
  if (end == nullptr) return 0;  // it is left behind
  *end = {run, object, ends};
  ends = end;
  if (const int key = key_once(); key >= 0)
    ::pthread_setspecific(static_cast<pthread_key_t>(key), &ends);
  return 0;
}
// NOLINTEND(bugprone-reserved-identifier)
