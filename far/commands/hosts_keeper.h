// HostsKeeper: a process that starts the servers of one run, and ends them after the run.
#pragma once

#include <string>
#include <vector>

#include "far/commands/host_server.h"
#include "outcore/result.h"

namespace outcore::cli {

struct KeptServers {
  std::string uri;                    // of the store that they form
  std::vector<std::string> failures;  // a line for each server that could not be started
};

// Starts the servers, and returns when each of them is up or has failed; with copies, all must come
// up. `file` names them in messages.
//
// The servers belong to a process of their own, which is not a child of this one. It ends them when
// this process has ended (also if it has become another program by exec), and when no process holds
// the descriptor any more that is left open here for this process and its children to inherit:
// children that go on in the background keep the servers. SIGTERM ends that process and the
// servers; if it is killed, their pipes close, and they end, too. REQUIRES: one thread. Errors:
// EHOSTUNREACH (no server is up), or one line that says why.
Result<KeptServers> keep_servers(const std::vector<ServerPlan>& plans, const std::string& file);

}  // namespace outcore::cli
