// ScriptNames: the names by which servers know our scripts (scripts.h): hashes of their texts.
//
// Any thread; the fault path.
#pragma once

#include <string_view>

#include "far/redis/scripts.h"
#include "far/redis/servers.h"

namespace outcore::redis {

class ScriptNames {
 public:
  // Sends all scripts to a server, which then knows them, and notes their names. 0 or -errno.
  int load(Connection& stream);
  // The same for any server that answers within the timeout. -EACCES: one refused them.
  int learn(Servers& servers, uint64_t timeout_ns);
  // REQUIRES: load() was successful once.
  std::string_view operator[](Script script) const { return names_[static_cast<size_t>(script)]; }

 private:
  char names_[kScriptCount][41] = {};
};

}  // namespace outcore::redis
