// OwnCommand: the command with which a program was started, and the same with one option changed:
// what its user types next. A value; any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "cli/json.h"
#include "core/base/next_run.h"

namespace outcore::cli {

struct OwnCommand {
  // Whether all of this is known. Older records have only the program.
  bool is_whole = false;
  std::vector<std::string> run;  // the lines of OUTCORE_RUN_COMMAND; empty: not by `outcore run`
  std::string program;           // with its arguments, as a shell reads them; empty: not known
  std::map<std::string, std::string> variables;  // OUTCORE_… that were set, with their values
  std::map<std::string, std::string> sources;    // options that were set, and where

  // It was given, by whatever means: "--learn".
  bool has(const std::string& option) const;
  // With `change`. What the program sets itself, no command changes: then it says so.
  std::string with(const base::NextChange& change) const;
};

OwnCommand own_command_of(const Json& record);
// Of a program that runs; `budget_source` as PublishedRuntime has it.
OwnCommand own_command_of(pid_t process, const std::string& budget_source);

// The lines of OUTCORE_RUN_COMMAND of a process; empty: it has none, or it is not readable.
std::vector<std::string> run_command_of(pid_t process);

}  // namespace outcore::cli
