// RunHosts: the machines that give their memory to a program of `outcore run`, and their servers.
#pragma once

#include <optional>

#include "far/commands/hosts_file.h"
#include "outcore/result.h"
#include "run/commands/run_options.h"

namespace outcore::cli {

struct RunHosts {
  std::optional<HostsFile> file;
  int replicas = 0;
  bool is_quiet = false;
};

// Reads the file of --hosts or OUTCORE_HOSTS, and sets the budget to what it says of this machine
// unless one was given. Takes the variables from the environment: the program's own runs start no
// servers again. Starts nothing. Errors: EINVAL; those of the file.
Result<RunHosts> read_run_hosts(const RunOptions& options);
// Starts the servers, if there is a file, and sets OUTCORE_STORE to them; warns of those that
// cannot be had. They end after this process. Errors: EHOSTUNREACH, none can be had.
Status start_run_hosts(const RunHosts& hosts);
// Servers that OUTCORE_STORE names as far:// must be there, as those of a file must: the program's
// memory would stay here otherwise. Errors: those of the store.
Status check_far_store(const RunHosts& hosts);

}  // namespace outcore::cli
