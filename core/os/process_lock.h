// ProcessLock: a lock of the whole process, taken around fork(): held by another thread at that
// moment, it would stay held in the child for ever. Any thread but the fault path.
#pragma once

#include "core/os/wait.h"

namespace outcore::os {

class ProcessLock : public Lock {
 public:
  ProcessLock();
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

  // All of them. REQUIRES: whoever holds one takes no other.
  static void lock_all();
  static void unlock_all();
};

}  // namespace outcore::os
