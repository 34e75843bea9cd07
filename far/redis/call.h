// Call: one command to one server, its whole answer back. For what is asked rarely; it allocates.
// Any thread but the fault path.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "far/redis/servers.h"

namespace outcore::redis {

// A whole reply.
struct Value {
  char type = '_';  // as Reply::type
  int64_t number = 0;
  std::string text;  // of '+', '-' and '$'
  std::vector<Value> items;

  // The item after the one that says `key`: HGETALL's answers. Empty if there is none.
  const std::string& field(const std::string& key) const;
};

struct Command {
  std::vector<std::string> words;
  uint32_t slot = 0;
  // So many replicas of the server have acknowledged it before it counts as done, as far as it has
  // any (Servers::acknowledging).
  uint32_t replicas = 0;
};

// The answer of a connection that is open. 0 or -errno: -EAGAIN if too few replicas acknowledged;
// then, how many did.
int talk(Connection& stream, const Command& command, uint32_t replicas, Value* value,
         uint32_t* acknowledged = nullptr);
// The answer, also one that is an error of the command itself. Redirections are followed and what
// cannot be now is repeated until the deadline.
// Errors: ETIMEDOUT, EACCES, and what the system said.
Result<Value> call(Servers& servers, const Command& command, uint64_t deadline_ns);
// The same to one server, once.
Result<Value> call_server(Servers& servers, uint32_t server, const Command& command,
                          uint64_t deadline_ns);

}  // namespace outcore::redis
