#include "core/os/process_lock.h"

#include <algorithm>
#include <vector>

namespace outcore::os {
namespace {

struct ProcessLocks {
  Lock guard;
  std::vector<ProcessLock*> locks;
};

ProcessLocks& process_locks() {
  static ProcessLocks* const made = new ProcessLocks;  // never destroyed: locks may be static
  return *made;
}

}  // namespace

ProcessLock::ProcessLock() {
  const SignalBlock block;
  const Locked locked(process_locks().guard);
  process_locks().locks.push_back(this);
}

ProcessLock::~ProcessLock() {
  const SignalBlock block;
  const Locked locked(process_locks().guard);
  std::erase(process_locks().locks, this);
}

void ProcessLock::lock_all() {
  process_locks().guard.lock();
  for (ProcessLock* lock : process_locks().locks) lock->lock();
}

void ProcessLock::unlock_all() {
  for (ProcessLock* lock : process_locks().locks) lock->unlock();
  process_locks().guard.unlock();
}

}  // namespace outcore::os
