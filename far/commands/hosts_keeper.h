// HostsKeeper: the process that starts the servers of one run, and ends them after it.
#pragma once

#include <string>
#include <vector>

#include "far/commands/host_server.h"
#include "outcore/result.h"

namespace outcore::cli {

struct KeptServers {
  std::string uri;                    // the store that they are
  std::vector<std::string> failures;  // lines of those that could not be started
};

// Starts the servers, and returns when each is up or has failed; with copies, all must come up.
// `file` names them in messages.
//
// They belong to a process of their own, which is no child of this one. It ends them when this
// process has ended, whatever it has become by exec by then, and no process holds the descriptor
// any more that is left open here for it and its children to inherit: those that go on in the
// background keep the servers. SIGTERM to it ends them, too; if it is killed, their pipes close,
// and they end. REQUIRES: one thread. Errors: EHOSTUNREACH, no server, or one line of why.
Result<KeptServers> keep_servers(const std::vector<ServerPlan>& plans, const std::string& file);

}  // namespace outcore::cli
