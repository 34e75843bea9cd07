#include "run/commands/check_environment.h"

#include "cli/command.h"
#include "outcore/runtime.h"
#include "run/commands/run_options.h"

namespace outcore::cli {

Status check_runtime_options() { return Runtime::check(); }

bool is_runtime_set() { return has_runtime_options(RunOptions{}); }

int check_environment(bool has_default_file) {
  tell_unknown_variables();
  if (!has_default_file && !is_runtime_set()) return 0;
  const Status status = check_runtime_options();
  return status ? 0 : report(status.error());
}

}  // namespace outcore::cli
