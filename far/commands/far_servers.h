// FarServers: the servers that give their memory to one program, and the store that they are.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "far/commands/host_server.h"
#include "far/commands/hosts_file.h"

namespace outcore::cli {

// One server for each line of the file but the first, in their order. With a replica, each has a
// copy on the host of the next line, the last on that of the first: a host's memory is then half
// for its own server and half for the copy of the one before, as far as both hosts have it. What
// has no address is planned, too, and says why it cannot be started. Asks name servers.
std::vector<ServerPlan> plan_servers(const HostsFile& file, int replicas);

// One thread.
class FarServers {
 public:
  FarServers(const std::vector<ServerPlan>& plans, std::vector<std::string> ssh);

  // All are started at once; copies when their servers are up, within hear().
  void start();
  bool is_settled() const;                    // nothing is being started any more
  void give_up(int seconds);                  // on those that still are
  std::vector<std::string> failures() const;  // one line each: which, and why
  bool has_one() const;                       // that is up
  // far://:PASSWORD@HOST:PORT[+HOST:PORT],…?replicas=N of those that are up.
  std::string uri() const;

  void add_outputs(std::vector<pollfd>* all) const;
  // Reads what they said. Returns a line for each that died: which, and what it means.
  std::vector<std::string> hear();
  void beat();
  bool has_elsewhere() const;  // any that must hear of us
  // Asks all to end.
  void end();
  bool are_gone();
  void kill();

 private:
  std::string name_of(const HostServer& server) const;
  std::string loss_of(size_t index) const;
  const HostServer* copy_of(size_t index) const;

  ServerAccess access_;
  bool has_copies_ = false;
  std::vector<std::unique_ptr<HostServer>> servers_;  // then their copies
};

}  // namespace outcore::cli
