// NextCommand: what the table of the end says to try next (core/base/next_run.h), as a command to
// type. It looks at the process that brought in the most pages; if they are fewer than 4096, it
// says nothing. If the run has a record, that knows more: then it names the report, or nothing
// where the report will say it at once.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"

namespace outcore::preload {

// Two lines, the reason and the command, of a named buffer four; or nothing. `processes`: their
// reports as JSON. `command`: OUTCORE_RUN_COMMAND, the lines that run/commands/run_command.h makes;
// the option is replaced in it, or added as the last one.
std::string next_command(const std::vector<base::Json>& processes,
                         const std::vector<std::string>& command);

}  // namespace outcore::preload
