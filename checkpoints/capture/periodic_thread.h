// PeriodicThread: makes a checkpoint every so often, and removes those of its own that are not to
// be kept. The program's signals are not for it.
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
    std::string name;  // of each, before the time
    // Makes one of this name, and says where. No number: there was nothing to hold.
    std::function<Result<CheckpointReport>(const std::string& name,
                                           std::shared_ptr<CheckpointTarget>* target)>
        make;
    // After each: what it cost or why there is none, and the error of all that was to be done.
    std::function<void(const Result<CheckpointReport>& made, const Status& all)> told;
  };
  // EINVAL (the interval, the name, the retention), EAGAIN (no thread).
  static Result<std::unique_ptr<PeriodicThread>> start(const std::string& attempted, Plan plan);
  ~PeriodicThread();  // end(). REQUIRES: not in its own thread
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

  // No other follows; waits for one that is under way, but not if make() or told() call it.
  void end();
  Status last() const;
  uint64_t made() const;

 private:
  struct State;
  explicit PeriodicThread(std::unique_ptr<State> state);
  const std::unique_ptr<State> state_;
};

}  // namespace outcore::checkpoints
