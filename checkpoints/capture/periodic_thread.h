// PeriodicThread: a thread that makes a checkpoint at each interval, and removes those of its own
// checkpoints that are no longer to be kept. It blocks the signals of the program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "checkpoints/capture/checkpoint_target.h"
#include "outcore/checkpoint.h"
#include "outcore/checkpoint_catalog.h"

namespace outcore::checkpoints {

inline constexpr uint64_t kEveryMsMin = 10, kEveryMsMax = uint64_t{1} << 42;

class PeriodicThread {
 public:
  struct Plan {
    uint64_t every_ms = 0;
    Retention keep;
    std::string name;  // each checkpoint's name begins with it; the time follows
    // Makes a checkpoint of this name, and reports it. A report without a number: there was nothing
    // to keep.
    std::function<Result<CheckpointReport>(const std::string& name,
                                           std::shared_ptr<CheckpointTarget>* target)>
        make;
    // Called after each attempt: what the checkpoint cost or why there is none, and the first error
    // of all that was to be done (removing old ones, too).
    std::function<void(const Result<CheckpointReport>& made, const Status& all)> told;
  };
  // Errors: EINVAL (the interval, the name or the retention), EAGAIN (no thread could be started).
  static Result<std::unique_ptr<PeriodicThread>> start(const std::string& attempted, Plan plan);
  ~PeriodicThread();  // calls end(). REQUIRES: not in its own thread
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

  // No further checkpoint begins. Waits for one that is under way, unless make() or told() calls
  // this.
  void end();
  Status last() const;
  uint64_t made() const;

 private:
  struct State;
  explicit PeriodicThread(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace outcore::checkpoints
