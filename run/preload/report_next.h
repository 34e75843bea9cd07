// NextCommand: the one change of options that promises most for the next run, as a command to type.
//
// It looks at the process that brought in the most pages; if they are fewer than 4096, it says
// nothing. The first rule that holds counts:
//
// 1. --budget, doubled: more than half of what it read had been read before (of a file of n bytes,
// of which m were read: m - n), its files together are larger than its budget, and as much memory
// again is available.
//
// 2. --page 64k: message delivery, smaller pages, more than half of the pages that were read came
// ahead of their faults, so in order; and the budget has room for 1024 of the larger pages. Pages
// that read zero without I/O do not count as read. With in-thread delivery larger pages gain
// nothing when they are read in order, and out of order they read more.
//
// 3. --delivery in-thread: message delivery, 4096 faults or more, and --delivery messages was not
// given. This rule is last, because people must decide whether their program allows it.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"

namespace outcore::preload {

// Two lines, the reason and the command; or nothing. `processes`: their reports as JSON. `command`:
// OUTCORE_RUN_COMMAND, the lines that run/commands/run_command.h makes; the option is replaced in
// it, or added as the last one.
std::string next_command(const std::vector<base::Json>& processes,
                         std::vector<std::string> command);

}  // namespace outcore::preload
