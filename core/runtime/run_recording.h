// RunRecording: the record of a run: of the whole of it by the option `report`, or of a part by the
// program. One is made at a time.
//
// Any thread; each function says which lock it takes.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "core/recording/recorder.h"
#include "core/runtime/runtime_impl.h"
#include "outcore/metrics.h"

namespace outcore::runtime {

class RunRecording {
 public:
  explicit RunRecording(Runtime::Impl& runtime) : runtime_(runtime) {}

  // Takes the mapping lock. EBUSY: it is recorded already.
  Status start();
  // If the option `report` asks for it. Once, at the start of the runtime.
  Status start_by_option();
  // The record of the part that start() began, as one line. Takes the mapping lock. Errors: EBUSY
  // (the option's, which ends with the runtime), EINVAL (nothing is recorded).
  Result<std::string> stop(const Metrics& metrics);
  // The whole run's, when the runtime ends. REQUIRES: is_of_whole_run(); once.
  std::string finish(const Metrics& metrics) { return record_of(*recorder_, metrics); }
  // The slot's cache is about to go. REQUIRES: the mapping lock.
  void note_end(const published::Entry& entry);
  // Its thread ends. In a forked child, which has none: it is left as it is.
  void end() { recorder_.reset(); }
  void leave_to_parent() { static_cast<void>(recorder_.release()); }

  // By the option `report`; and the file. Constant once the runtime has started.
  bool is_of_whole_run() const { return is_of_whole_run_; }
  const std::string& path() const { return path_; }

  std::atomic<bool> is_written{false};  // the whole run's record is in its file, or on its way

 private:
  std::string record_of(recording::Recorder& of, const Metrics& metrics) const;

  Runtime::Impl& runtime_;
  std::unique_ptr<recording::Recorder> recorder_;  // changes under the mapping lock
  std::string path_;
  bool is_of_whole_run_ = false;
};

}  // namespace outcore::runtime
