// Records of runs: of the whole of it by the option `report`, or of a part by the program.
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

namespace outcore {

Status Runtime::Impl::record() {
  const std::lock_guard<std::mutex> guard(mapping);
  if (recorder != nullptr)
    return Error{EBUSY, "record: this runtime is recorded already; one record is made at a time"};
  const auto policy = [pager = &engine->pager()] {
    return pager->shards.front()->policy->metrics().policy;
  };
  std::function<recording::BufferState()> shared;
  if (shared_buffer != nullptr)
    shared = [name = options.buffer, of = shared_buffer.get()] {
      return recording::BufferState{name, of->room().limit_bytes(),
                                    of->member().occupancy().used_bytes(),
                                    of->member().board().used_bytes_max.load()};
    };
  auto started = recording::Recorder::start(sheet, policy, std::move(shared));
  if (!started) return Error{started.code(), "record: " + started.message()};
  recorder = std::move(started).value();
  return {};
}

std::string Runtime::Impl::record_of(recording::Recorder& of, const Metrics& metrics) const {
  std::map<std::string, std::string> settings;
  base::Json set_by = base::Json::object();  // a default is told by nobody
  for (const runtime::Option& option : runtime::option_table()) {
    settings[option.name] = option.write(options);
    std::string source = options.source_of(option.name);
    if (!source.starts_with("default")) set_by[option.name] = std::move(source);
  }
  base::Json record = of.finish(metrics, settings);
  record["sources"] = std::move(set_by);
  return record.dump({.is_as_added = true});
}

Status Runtime::Impl::start_recording() {
  if (options.report_file == "none") return {};
  const std::string attempt =
      "report to " + options.report_file + " (" + options.source_of("report") + ")";
  const int file = runtime::open_to_append(options.report_file);
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
  const std::filesystem::path whole = std::filesystem::absolute(options.report_file, unknown);
  record_path = unknown ? options.report_file : whole.string();
  Status started = record();
  if (!started) return Error{started.code(), attempt + ": " + started.message()};
  is_recorded_to_file = true;
  return {};
}

Status Runtime::start_recording() {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("record"); !s) return s;
  return impl_->record();
}

Result<std::string> Runtime::stop_recording() {
  const os::CancelBlock uncancelled;
  if (Status s = impl_->check_alive("stop recording"); !s) return Error{s.code(), s.message()};
  const Metrics metrics = runtime::collect_metrics(*impl_);
  std::unique_ptr<recording::Recorder> recorder;  // its thread ends after the lock is given up
  const std::lock_guard<std::mutex> guard(impl_->mapping);
  if (impl_->is_recorded_to_file)
    return Error{EBUSY, "stop recording: the option `report` records the whole run"};
  recorder = std::move(impl_->recorder);
  if (recorder == nullptr)
    return Error{EINVAL, "stop recording: nothing is recorded; call start_recording() first"};
  return impl_->record_of(*recorder, metrics);
}

}  // namespace outcore
