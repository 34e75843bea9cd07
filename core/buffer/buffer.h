// Buffer: pages that the processes of a job share, as one of them sees it: its place among the
// members, and what it does for the buffer. There is one of each name in a process, as long as
// somebody there has it.
//
// Whoever faults, fills, in its own thread; one process keeps (Keeping); a page is in memory once,
// whoever touches it; one limit holds for all. Any member may be killed at any instruction.
#pragma once

#include <memory>
#include <string>

#include "core/buffer/claims.h"
#include "core/buffer/heir.h"
#include "core/buffer/keeping.h"
#include "core/buffer/member.h"
#include "core/buffer/pins.h"
#include "core/buffer/puncher.h"
#include "core/buffer/room.h"
#include "outcore/result.h"

namespace outcore::buffer {

class Buffer {
 public:
  // As Member::join(); a second call for the same name returns the same. A forked child joins anew.
  // Errors: as there; EAGAIN (no thread could be started).
  static Result<std::shared_ptr<Buffer>> join(const std::string& name, uint64_t limit_bytes);

  explicit Buffer(std::unique_ptr<Member> member);  // without threads

  Member& member() { return *member_; }
  Claims& claims() { return claims_; }
  Pins& pins() { return pins_; }
  Room& room() { return room_; }
  Puncher& puncher() { return puncher_; }
  // Of one without threads of its own, which join() starts: for a simulation.
  Keeping& keeping() { return keeping_; }
  Heir& heir() { return heir_; }

  // What this process may use beside the frames, more by so much: the keeping process makes room
  // for it. False: the buffer cannot do without, or the room was not made within `wait_ns`; then
  // nothing has changed. Not the fault path.
  bool acquire_private(uint64_t bytes, uint64_t wait_ns);
  void release_private(uint64_t bytes);  // REQUIRES: acquired

 private:
  std::unique_ptr<Member> member_;
  Puncher puncher_;
  Claims claims_;
  Pins pins_;
  Room room_;
  Keeping keeping_;
  Heir heir_;  // it ends first
};

}  // namespace outcore::buffer
