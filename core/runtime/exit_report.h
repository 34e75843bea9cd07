// ExitReport: what the option metrics_at_exit asks for, when a runtime ends, or the process does.
#pragma once

#include <memory>

#include "core/runtime/runtime_impl.h"

namespace outcore::runtime {

Metrics collect_metrics(Runtime::Impl& impl);
// If the process calls exit() before the runtime has ended, it is reported then.
void report_at_exit(const std::shared_ptr<Runtime::Impl>& impl);
// The runtime ends. Once: not if it was reported before.
void report_end(Runtime::Impl& impl);

}  // namespace outcore::runtime
