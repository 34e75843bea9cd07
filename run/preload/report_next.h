// NextCommand: the one change that promises most for the next run, as the command to type.
//
// The process that brought in the most pages decides; of fewer than 4096 pages nothing is said. The
// first that holds:
// 1. --budget, doubled: of what it read more than half had been read before (a file of n bytes of
//    which m were read: m - n), its files together are larger than its budget, and as much memory
//    again is available.
// 2. --page 64k: messages, smaller pages, of the pages that were read more than half came ahead of
//    their faults, so in order; and the budget holds 1024 of the larger. What reads zero without
//    I/O is no page that was read. In-thread, larger pages gain nothing in order; out of order they
//    read more.
// 3. --delivery in-thread: messages, 4096 faults or more, and --delivery messages was not asked
//    for. It is the last, since what it asks of the program is for people to know.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"

namespace outcore::preload {

// Two lines, the reason and the command; or nothing. `processes`: their reports as JSON.
// `command`: OUTCORE_RUN_COMMAND, the lines that run/commands/run_command.h makes: the option is
// replaced, or added as the last one.
std::string next_command(const std::vector<base::Json>& processes,
                         std::vector<std::string> command);

}  // namespace outcore::preload
