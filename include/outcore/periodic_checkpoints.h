// PeriodicCheckpoints: a thread that makes a checkpoint of a program's parts every so often, and
// keeps the last few.
//
//   auto saved = outcore::PeriodicCheckpoints::start({grid, {"step", step}}, {.every_ms =
//   600'000}); …                                    // the program goes on; after a death:
//   outcore::restart() auto s = saved->end();               // the last one's error, if it failed
//
// Each is as checkpoint() makes it (outcore/checkpoint.h), by whose rules the parts are held. If
// one fails the program goes on, those there are stay, and the next is tried when its time comes.
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
  uint64_t every_ms = 600'000;    // from the start of one to that of the next; at least 10
  Retention keep{.last = 3};      // of its own; those of other names stay
  std::string name = "periodic";  // each is called "NAME 2026-11-22 10:30:00.123" (UTC)
  // After each, in the thread that makes them: what it cost, or why there is none. May be empty. It
  // may call end(), which does not wait then, but must not destroy the object.
  std::function<void(const Result<CheckpointReport>& made)> told;
  CheckpointOptions checkpoint;  // pool, comment, quiesce, resume, may_stop_threads
};

// One thread ends it or moves it; made() is for any.
class PeriodicCheckpoints {
 public:
  // The parts must outlive it. Errors: those of checkpoint() that are known before one is made;
  // EINVAL (the interval; a retention that keeps nothing; a heap without quiesce(), which has to
  // keep threads from allocating in it); EAGAIN (no thread).
  static Result<PeriodicCheckpoints> start(std::vector<CheckpointPart> parts,
                                           const PeriodicOptions& options = {});
  PeriodicCheckpoints(PeriodicCheckpoints&&) noexcept;
  PeriodicCheckpoints& operator=(PeriodicCheckpoints&&) noexcept;
  ~PeriodicCheckpoints();  // end()

  // Waits for one that is under way; no other follows. The error of the last, if it failed.
  // REQUIRES: a quiesce() that is under way does not wait for this thread.
  Status end();
  uint64_t made() const;  // so far

 private:
  struct Impl;
  explicit PeriodicCheckpoints(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outcore
