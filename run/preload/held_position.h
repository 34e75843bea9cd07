// HeldPosition: while it exists, no other call of this process reads, writes or seeks by the
// position of a descriptor of the file. A call by the position is about bytes that must be stored,
// or kept out of memory, before the kernel makes it: a move in between would make them others.
// The kernel holds the position of a descriptor for a call, too; we do not know which descriptors
// share one, so all of the file wait. Meanwhile no handler of the program runs in this thread,
// which might want the position, too, and the thread is not cancelled. Any thread; before the
// door's lock, never within.
#pragma once

#include "core/os/wait.h"
#include "run/preload/inside.h"
#include "run/preload/taken_file.h"

namespace outcore::preload {

class HeldPosition {
 public:
  explicit HeldPosition(TakenFile& file) : locked_(file.position) {}
  HeldPosition(const HeldPosition&) = delete;
  HeldPosition& operator=(const HeldPosition&) = delete;

 private:
  const Inside inside_;  // before the lock, which a handler must not find held
  const os::Locked locked_;
};

}  // namespace outcore::preload
