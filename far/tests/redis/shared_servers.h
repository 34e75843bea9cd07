// SharedServers: what the servers of a test know of the writers that share a store's lease.
#pragma once

#include <string>
#include <vector>

#include "far/tests/redis/test_servers.h"

namespace outcore::redis_test {

inline std::string record_of(const std::string& name) { return "oc:{catalog}:" + name; }

inline std::vector<std::string> members_of(TestServers& servers, int server,
                                           const std::string& name) {
  std::vector<std::string> members;
  const redis::Value fields = servers.ask(server, {"HKEYS", record_of(name)});
  for (const redis::Value& field : fields.items)
    if (field.text.starts_with("member:")) members.push_back(field.text);
  return members;
}

// As if it had been silent for so long. How many members the process was.
inline int end_lease_of(TestServers& servers, int server, const std::string& name, pid_t process) {
  int count = 0;
  for (const std::string& member : members_of(servers, server, name)) {
    const std::string text = servers.ask(server, {"HGET", record_of(name), member}).text;
    if (text.find(" process " + std::to_string(process) + " on ") == std::string::npos) continue;
    servers.ask(server, {"HSET", record_of(name), member, "1" + text.substr(text.find(' '))});
    ++count;
  }
  return count;
}

}  // namespace outcore::redis_test
