// RunOptions: the options of `outcore run`, and the environment that hands them to the preload
// library.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "outcore/result.h"

namespace outcore::cli {

class CommandSyntax;

// An option of the runtime (docs/reference/options.md): as a long option, and as a variable.
struct RuntimeOption {
  const char* name;  // "scratch_dir": --scratch-dir, OUTCORE_SCRATCH_DIR
  const char* type;
  const char* help;

  std::string flag() const;
  std::string variable() const;
};

struct RunOptions {
  static constexpr size_t kBudget = 0;  // of `runtime`

  std::vector<std::optional<std::string>> runtime;  // as the table of options goes
  std::vector<std::string> map, not_map;
  std::vector<std::string> program;  // for the help alone: its words are set apart before
  std::optional<std::string> min_size, alloc, store, hosts, replicas, json, metrics;
  bool allows_aio = false, keeps_privileges = false, shares_writes = false;
  bool is_explained = false, is_quiet = false;
};

// What was given, and where: by the option, else by its variable. A variable that is set to nothing
// is one that is not set.
struct GivenOption {
  std::optional<std::string> text;
  std::string place;  // "--alloc 12q", "OUTCORE_RUN_ALLOC=12q"; no password

  Error wrong(const std::string& why) const;
  static GivenOption find(const std::optional<std::string>& option, const char* flag,
                          const char* variable);
};

// The options of `outcore run`. `options` outlives the command.
void add_run_options(CommandSyntax& run, RunOptions& options);

// The program may go elsewhere before it comes to a path; as it is if there is no folder to be in.
std::string absolute(const std::string& path);
// Where the page of --report goes; nothing: no page was asked for, or a record alone.
std::optional<std::string> report_page(const RunOptions& options);
// Sets the environment of the program; an option wins over its variable. What is wrong, in either,
// is an error here rather than in the program. Errors: EINVAL; those of files that are named.
Status set_run_environment(const RunOptions& options);
// Whether any option of the runtime was set, here or in the environment.
bool has_runtime_options(const RunOptions& options);
// A message of the runtime, which knows variables only, in the words of the command line.
std::string in_words_of_flags(std::string message, const RunOptions& options);

}  // namespace outcore::cli
