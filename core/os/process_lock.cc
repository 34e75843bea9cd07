#include "core/os/process_lock.h"

#include <algorithm>
#include <vector>

namespace outcore::os {
namespace {

struct All {
  Lock guard;
  std::vector<ProcessLock*> locks;
};

All& all() {
  static All* const made = new All;  // never destroyed: locks may be static
  return *made;
}

}  // namespace

ProcessLock::ProcessLock() {
  const SignalBlock block;
  const Locked locked(all().guard);
  all().locks.push_back(this);
}

ProcessLock::~ProcessLock() {
  const SignalBlock block;
  const Locked locked(all().guard);
  std::erase(all().locks, this);
}

void ProcessLock::lock_all() {
  all().guard.lock();
  for (ProcessLock* lock : all().locks) lock->lock();
}

void ProcessLock::unlock_all() {
  for (ProcessLock* lock : all().locks) lock->unlock();
  all().guard.unlock();
}

}  // namespace outcore::os
