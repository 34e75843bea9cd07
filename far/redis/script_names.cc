#include "far/redis/script_names.h"

#include <cerrno>
#include <cstring>
#include <span>

#include "core/base/clock.h"

namespace outcore::redis {

int ScriptNames::load(Connection& stream) {
  for (const std::string_view text : kScriptText) {
    stream.begin(3);
    stream.word("SCRIPT");
    stream.word("LOAD");
    stream.word(text);
  }
  stream.flush();
  for (auto& name : names_) {
    Reply reply;
    if (const int result = stream.read(&reply); result != 0) return result;
    if (reply.type != '$' || reply.number != 40) return stream.refuse(reply);
    char heard[41] = {};
    if (stream.read_bytes(std::as_writable_bytes(std::span(heard, 40))) != 0 ||
        stream.end_bytes() != 0)
      return stream.error();
    if (name[0] == 0) std::memcpy(name, heard, sizeof heard);
  }
  return 0;
}

int ScriptNames::learn(Servers& servers, uint64_t timeout_ns) {
  const uint64_t deadline_ns = base::now_ns() + timeout_ns;
  int error = -EHOSTUNREACH;
  while (base::now_ns() < deadline_ns) {
    for (uint32_t server = 0; server < servers.count(); ++server) {
      Line* const line = servers.acquire(server, Use::kControl, deadline_ns, &error);
      if (line == nullptr) continue;
      error = load(line->connection);
      servers.note_refusal(*line, error);
      if (error != 0) line->connection.close();
      servers.release(line);
      if (error == 0 || error == -EACCES || error == -EREMOTEIO) return error;
    }
    servers.refresh(deadline_ns);
  }
  return error;
}

}  // namespace outcore::redis
