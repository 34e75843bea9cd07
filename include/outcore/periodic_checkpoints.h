// PeriodicCheckpoints: a thread that makes checkpoints of a program's parts at regular intervals
// and keeps the last ones.
//
//   auto saved = outcore::PeriodicCheckpoints::start({grid, {"step", step}},
//                                                    {.every_ms = 600'000});
//   …                          // the program continues; after a crash: outcore::restart()
//   auto s = saved->end();     // the error of the last one, if it failed
//
// Each is made by checkpoint() (outcore/checkpoint.h), with the same rules for the parts. If one
// fails, the program continues, the existing checkpoints stay, and the next is tried at its time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "outcore/checkpoint.h"
#include "outcore/checkpoint_catalog.h"
#include "outcore/result.h"

namespace outcore {

struct PeriodicOptions {
  uint64_t every_ms = 600'000;    // from the start of one to the start of the next; at least 10
  Retention keep{.last = 3};      // for the checkpoints of this object; others stay
  std::string name = "periodic";  // each is named "NAME 2026-11-22 10:30:00.123" (UTC)
  // Called after each checkpoint, in the thread that makes them: its report, or the error. May be
  // empty. It may call end(), which then does not wait, but must not destroy the object.
  std::function<void(const Result<CheckpointReport>& made)> told;
  CheckpointOptions checkpoint;  // pool, comment, quiesce, resume, may_stop_threads
};

// One thread at a time may end or move it; made() may be called by any thread.
class PeriodicCheckpoints {
 public:
  // The parts must outlive the object. Errors: those of checkpoint() that can be checked in
  // advance; EINVAL (the interval; a retention that keeps nothing; a heap without quiesce(), which
  // must keep threads from allocating in it); EAGAIN (no thread can be started).
  static Result<PeriodicCheckpoints> start(std::vector<CheckpointPart> parts,
                                           const PeriodicOptions& options = {});
  PeriodicCheckpoints(PeriodicCheckpoints&&) noexcept;
  PeriodicCheckpoints& operator=(PeriodicCheckpoints&&) noexcept;
  ~PeriodicCheckpoints();  // end()

  // Waits for a checkpoint that is being made; no other follows. Returns the error of the last one,
  // if it failed. REQUIRES: a quiesce() that is running does not wait for this thread.
  Status end();
  uint64_t made() const;  // how many were made so far

 private:
  struct Impl;
  explicit PeriodicCheckpoints(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outcore
