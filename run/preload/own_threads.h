// OwnThreads: the threads of this library that are just starting, and the moment at which the
// program restricts the system calls of all its threads (seccomp, prctl).
//
// The C library tells the kernel of a new thread before the thread's function begins, and ends the
// process where it may not (rseq). A thread of ours that the program knows nothing of must not be
// there when the program's filter comes. Any thread.
#pragma once

#include <pthread.h>

namespace outcore::preload {

class OwnThreads {
 public:
  // As pthread_create(), for all threads that this library starts (inside.cc). While the program
  // installs a filter it waits, for two seconds at most: a signal handler may have interrupted
  // that.
  static int start(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument);

  // Waits until all of them sleep in the kernel, and so make no further call of their own accord,
  // for a fifth of a second at most. Throws std::bad_alloc.
  static void let_rest();

  // While it exists none is starting, and none starts. It waits for those that are, for two seconds
  // at most. Its end makes no system call, as there may be a filter.
  class NoneStarting {
   public:
    NoneStarting();
    ~NoneStarting();
    NoneStarting(const NoneStarting&) = delete;
    NoneStarting& operator=(const NoneStarting&) = delete;
  };

  // Called by the thread that forked. Those that were starting are the parent's.
  static void after_fork_in_child();
};

}  // namespace outcore::preload
