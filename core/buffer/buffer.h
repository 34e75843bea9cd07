// Buffer: pages that the processes of a job share, as one of the processes sees them: its
// membership, and what it does for the buffer. A process has at most one object for each name,
// shared by its users.
//
// A thread that faults fills the page itself; one process chooses what leaves (Keeping); a page is
// in memory once, whichever process touches it; one limit holds for all. Any member may be killed
// at any instruction.
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
  // For a simulation, which calls what the threads of a joined buffer do.
  Keeping& keeping() { return keeping_; }
  Heir& heir() { return heir_; }

  // Takes `bytes` of the limit for this process's own memory beside the frames: the keeping process
  // evicts pages for it. False: too little would be left for pages, or no room was made within
  // `wait_ns`; then nothing has changed. Not the fault path.
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
