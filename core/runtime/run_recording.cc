#include "core/runtime/run_recording.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/base/record_file.h"
#include "core/os/cancel_block.h"
#include "core/runtime/exit_report.h"
#include "core/runtime/option_table.h"
#include "core/runtime/runtime_impl.h"
#include "core/runtime/sharing.h"

namespace outcore {
namespace runtime {

Status RunRecording::start() {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  if (recorder_ != nullptr)
    return Error{EBUSY, "record: this runtime is recorded already; one record is made at a time"};
  const auto policy = [pager = &runtime_.engine->pager()] {
    return pager->shards.front()->policy->metrics().policy;
  };
  std::function<recording::BufferState()> shared;
  if (runtime_.sharing->buffer() != nullptr)
    shared = [name = runtime_.options.buffer, of = runtime_.sharing->buffer().get()] {
      return recording::BufferState{name, of->room().limit_bytes(),
                                    of->member().occupancy().used_bytes(),
                                    of->member().board().used_bytes_max.load()};
    };
  auto started = recording::Recorder::start(runtime_.sheet, policy, std::move(shared));
  if (!started) return Error{started.code(), "record: " + started.message()};
  recorder_ = std::move(started).value();
  return {};
}

std::string RunRecording::record_of(recording::Recorder& of, const Metrics& metrics) const {
  std::map<std::string, std::string> settings;
  base::Json set_by = base::Json::object();  // a default is told by nobody
  for (const Option& option : option_table()) {
    settings[option.name] = option.write(runtime_.options);
    std::string source = runtime_.options.source_of(option.name);
    if (!source.starts_with("default")) set_by[option.name] = std::move(source);
  }
  base::Json record = of.finish(metrics, settings);
  record["sources"] = std::move(set_by);
  return record.dump({.is_as_added = true});
}

Status RunRecording::start_by_option() {
  if (runtime_.options.report_file == "none") return {};
  const std::string attempt = "report to " + runtime_.options.report_file + " (" +
                              runtime_.options.source_of("report") + ")";
  const int file = open_to_append(runtime_.options.report_file);
  struct stat about {};
  const bool is_file = file >= 0 && ::fstat(file, &about) == 0 && S_ISREG(about.st_mode);
  const bool is_another = is_file && !base::may_hold_records(file);
  if (file >= 0) ::close(file);
  if (is_another) return Error{EINVAL, attempt + ": " + base::kNoRecordFile};
  if (!is_file)
    return base::system_error(file < 0 ? file : EINVAL, attempt,
                              "name a file in a folder that you may write to");
  // The program may be elsewhere when it ends.
  std::error_code unknown;
  const std::filesystem::path whole =
      std::filesystem::absolute(runtime_.options.report_file, unknown);
  path_ = unknown ? runtime_.options.report_file : whole.string();
  Status started = start();
  if (!started) return Error{started.code(), attempt + ": " + started.message()};
  is_of_whole_run_ = true;
  return {};
}

Result<std::string> RunRecording::stop(const Metrics& metrics) {
  std::unique_ptr<recording::Recorder> ended;  // its thread ends after the lock is given up
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  if (is_of_whole_run_)
    return Error{EBUSY, "stop recording: the option `report` records the whole run"};
  ended = std::move(recorder_);
  if (ended == nullptr)
    return Error{EINVAL, "stop recording: nothing is recorded; call start_recording() first"};
  return record_of(*ended, metrics);
}

void RunRecording::note_end(const published::Entry& entry) {
  if (recorder_ != nullptr) recorder_->note_end(entry);
}

}  // namespace runtime

Status Runtime::start_recording() {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("record"); !s) return s;
  return impl_->recording->start();
}

Result<std::string> Runtime::stop_recording() {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("stop recording"); !s) return Error{s.code(), s.message()};
  const Metrics metrics = runtime::collect_metrics(*impl_);
  return impl_->recording->stop(metrics);
}

}  // namespace outcore
