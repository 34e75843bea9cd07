#include "run/commands/check_environment.h"

#include "cli/command.h"
#include "outcore/runtime.h"
#include "run/commands/run_options.h"

namespace outcore::cli {

// A start that is refused for its page size has looked at everything else that was set.
Status check_runtime_options() {
  RuntimeOptions refused;
  refused.page_bytes = 1;
  const Result<Runtime> runtime = Runtime::start(refused);
  if (runtime.ok() || runtime.message().starts_with("page = ")) return {};
  return runtime.status();
}

bool is_runtime_set() { return has_runtime_options(RunOptions{}); }

int check_environment(bool has_default_file) {
  tell_unknown_variables();
  if (!has_default_file && !is_runtime_set()) return 0;
  const Status status = check_runtime_options();
  return status ? 0 : report(status.error());
}

}  // namespace outcore::cli
