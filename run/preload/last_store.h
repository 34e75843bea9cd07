// LastStore: a thread of ours that stores what the program wrote when the process ends.
//
// A process may end anywhere: in a signal handler on a small stack, in the middle of malloc(),
// while any lock of the program is held. So the thread that ends it only wakes this thread, and
// waits. This thread needs no lock that the program can hold, and its memory comes from OwnMemory.
#pragma once

#include <cstdint>

namespace outcore::preload {

class LastStore {
 public:
  // kStoreAndRetire: no code of the program runs any more, and its space on servers may be freed.
  enum class What : uint8_t { kStore, kStoreAndReport, kStoreAndRetire };

  // Starts the thread, once for each process. False: the system has no thread left. Under the
  // door's lock.
  static bool start();
  // Returns when everything is stored, or when storing has not progressed for
  // settings().patience_s, which it reports. Returns at once if the thread does not exist: nothing
  // was taken, or this is a child of the process that has taken it. Any thread; async-signal-safe.
  static void run(What what);
  // run(kStoreAndReport); where there is no such thread the calling one does it.
  static void store_and_report();
  static bool is_there();
  // The process is ending: what would be taken from now on might not be stored.
  static bool has_begun();
  static void resume();  // the process does not end after all
  // Counts attempts to end the process, from 1: what was reported in one is reported again in the
  // next.
  static uint32_t attempt();
  static void note_attempt_over();  // the process may go on (after an exec that fails)
  // Something was stored, so run() goes on waiting. Called by the thread that stores.
  static void note_progress();
  // In a forked child: the thread is the parent's.
  static void forget_in_child();
};

}  // namespace outcore::preload
