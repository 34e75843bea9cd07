// LastStore: what the program wrote is stored when the process ends, by a thread of ours.
//
// A process may end anywhere: in a signal handler on a small stack, in the middle of malloc(), with
// any lock of the program's held. So who ends it only wakes this thread, and waits. The thread
// needs no lock that the program can hold, and its memory is OwnMemory's.
#pragma once

#include <cstdint>

namespace outcore::preload {

class LastStore {
 public:
  // kStoreAndRetire: nothing of the program runs any more, and others may have its far space.
  enum class What : uint8_t { kStore, kStoreAndReport, kStoreAndRetire };

  // Starts the thread, once a process. False: the system gives none. Under the door's lock.
  static bool start();
  // Returns when all is stored, or when storing has not moved for settings().patience_s: then it
  // says so.
  // At once where there is no thread: nothing was taken, or this is a child of who took it. Any
  // thread; async-signal-safe.
  static void run(What what);
  static bool is_there();
  // The process ends: what would be taken from now on might not be stored.
  static bool has_begun();
  static void go_on();  // it does not end, after all
  // Counts the ends that were tried, from 1: what is told of one is told anew of the next.
  static uint32_t attempt();
  static void note_attempt_over();  // the process may go on (an exec that fails)
  // Some of it is stored: whoever waits goes on waiting. By the thread that stores.
  static void note_progress();
  // The parent's thread is not the child's.
  static void forget_in_child();
};

}  // namespace outcore::preload
