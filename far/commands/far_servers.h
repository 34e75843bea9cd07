// FarServers: the servers that lend their memory to one program, and the store that they form.
#pragma once

#include <poll.h>

#include <memory>
#include <string>
#include <vector>

#include "far/commands/host_server.h"
#include "far/commands/hosts_file.h"

namespace outcore::cli {

// Plans one server for each line of the file except the first, in their order. With a replica, each
// server has a copy on the host of the next line; that of the last is on the host of the first.
// Half of a host's memory is then for its own server, and half for the copy of the one before, as
// far as both hosts have it. A host whose address is not found is planned, too, with the reason why
// it cannot be started. Asks name servers.
std::vector<ServerPlan> plan_servers(const HostsFile& file, int replicas);

// One thread.
class FarServers {
 public:
  FarServers(const std::vector<ServerPlan>& plans, std::vector<std::string> ssh);

  // Starts all of them at once. Their copies are started within read_output(), when the servers are
  // up.
  void start();
  bool is_settled() const;                    // no server is being started any more
  void give_up(int seconds);                  // on servers that are still being started
  std::vector<std::string> failures() const;  // a line for each: which server, and why
  bool has_one() const;                       // at least one is up
  // The store of the servers that are up: far://:PASSWORD@HOST:PORT[+HOST:PORT],…?replicas=N.
  std::string uri() const;

  void add_outputs(std::vector<pollfd>* all) const;
  // Reads what the servers have written. Returns a line for each that died: which, and what that
  // means.
  std::vector<std::string> read_output();
  void beat();
  bool has_elsewhere() const;  // a server on another machine, which must get our beats
  // Asks all servers to end.
  void end();
  bool are_gone();
  void kill();

 private:
  std::string name_of(const HostServer& server) const;
  std::string loss_of(size_t index) const;
  const HostServer* copy_of(size_t index) const;

  ServerAccess access_;
  bool has_copies_ = false;
  std::vector<std::unique_ptr<HostServer>> servers_;  // first the servers, then their copies
};

}  // namespace outcore::cli
