// ExitReport: what the option metrics_at_exit asks for, when a runtime ends, or the process does.
#pragma once

#include <memory>
#include <string>

#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

// Where the option metrics_at_exit says. To a path: one line of JSON behind those of other runtimes
// and processes, which never overwrite each other.
void write_metrics(const std::string& where, const Metrics& metrics);
Metrics collect_metrics(Runtime::Impl& impl);
// If the process calls exit() before the runtime has ended, it is reported then.
void report_at_exit(const std::shared_ptr<Runtime::Impl>& impl);
// The runtime ends. Once: not if it was reported before.
void report_end(Runtime::Impl& impl);

}  // namespace outcore::runtime
