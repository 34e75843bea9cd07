// Run facts: what a record says of the program and of the machine (docs/reference/run-format.md).
#pragma once

#include <cstdint>
#include <string>

#include "core/base/json.h"
#include "core/published/layout.h"

namespace outcore::recording {

// `command`, `arguments` (null: they are too long to be recorded), `run_command` (null: `outcore
// run` has not started it), `pid`, `started`.
base::Json program_facts(uint64_t started_since_1970_ns, base::Json run_command);
// The command of `outcore run`, if that has started the program; else null. The environment is
// read: not while another thread may change it.
base::Json run_command_facts();
base::Json environment_facts();
// "2026-01-31T23:59:59Z".
std::string time_text(uint64_t since_1970_ns);
// Files that were left to the kernel, or handed back to it.
base::Json left_files_json(const published::Layout& seen);

}  // namespace outcore::recording
