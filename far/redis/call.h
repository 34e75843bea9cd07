// Call: sends one command to one server, and returns the whole reply. For rare calls; it allocates.
// Any thread but the fault path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "far/redis/servers.h"

namespace outcore::redis {

// A complete reply.
struct Value {
  char type = '_';  // as Reply::type
  int64_t number = 0;
  std::string text;  // of '+', '-' and '$'
  std::vector<Value> items;

  // The item that follows the item `key`, in a reply of HGETALL. Empty if there is none.
  const std::string& field(const std::string& key) const;
};

struct Command {
  std::vector<std::string> words;
  uint32_t slot = 0;
  // The command is done only when so many replicas of the server have acknowledged it, as far as
  // the server has them (Servers::acknowledging).
  uint32_t replicas = 0;
};

// Sends the command over an open connection. 0 or -errno. -EAGAIN: too few replicas have
// acknowledged it; *acknowledged says how many did.
int talk(Connection& stream, const Command& command, uint32_t replicas, Value* value,
         uint32_t* acknowledged = nullptr);
// Sends the command to the servers of its slot, and returns the reply, which may be an error reply.
// Redirections are followed, and what cannot be done at the moment is repeated until the deadline.
// Errors: ETIMEDOUT, EACCES, and those of the system.
Result<Value> call(Servers& servers, const Command& command, uint64_t deadline_ns);
// The same for one server, without repetition.
Result<Value> call_server(Servers& servers, uint32_t server, const Command& command,
                          uint64_t deadline_ns);

}  // namespace outcore::redis
