// ExitReport: writes the report of the option metrics_at_exit, when a runtime or the process ends.
// Any thread; not on the fault path.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

// Writes metrics to where metrics_at_exit says. To a path: appends one line of JSON; runtimes and
// processes never overwrite each other's lines.
void write_metrics(const std::string& where, const Metrics& metrics);
Metrics collect_metrics(Runtime::Impl& impl);
// Reports the runtime when the process calls exit(), if the runtime has not ended by then.
void report_at_exit(const std::shared_ptr<Runtime::Impl>& impl);
// Reports a runtime that ends, unless it was reported before; what it has learnt goes to its
// profiles. Failures are printed on stderr.
void report_end(Runtime::Impl& impl);
// What the runtime has learnt goes to its profiles when the process calls exit(), likewise.
void keep_learnt_at_exit(const std::shared_ptr<Runtime::Impl>& impl);
// Opens a file that lines are appended to, without waiting for anybody: a descriptor, or -errno.
int open_to_append(const std::string& path, bool may_create = true);
// The program ends, possibly in the middle of a call of another thread: waits for a lock for a
// short time only. False: it is not locked.
bool lock_soon(std::mutex& lock);

}  // namespace outcore::runtime
