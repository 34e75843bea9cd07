#include "far/redis/call.h"

#include <algorithm>
#include <cerrno>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/os/wait.h"

namespace outcore::redis {
namespace {

constexpr uint64_t kTextMax = 64 << 20;
constexpr int kDepthMax = 8;

int read_value(Connection& stream, Value* value, int depth) {
  Reply reply;
  if (const int result = stream.read(&reply); result != 0) return result;
  *value = {reply.type, reply.number, std::string(reply.text), {}};
  if (reply.type == '$') {
    if (static_cast<uint64_t>(reply.number) > kTextMax) return -EPROTO;
    value->text.resize(static_cast<size_t>(reply.number));
    if (stream.read_bytes(std::as_writable_bytes(std::span(value->text))) != 0)
      return stream.error();
    return stream.end_bytes();
  }
  if (reply.type != '*') return 0;
  if (depth == kDepthMax) return -EPROTO;
  for (int64_t i = 0; i < reply.number; ++i) {
    value->items.emplace_back();
    if (const int result = read_value(stream, &value->items.back(), depth + 1); result != 0)
      return result;
  }
  return 0;
}

bool is_passing(const std::string& error) {
  for (const char* const name : {"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "LOADING", "MASTERDOWN",
                                 "NOREPLICAS", "READONLY", "BUSY"})
    if (error.starts_with(name)) return true;
  return false;
}

}  // namespace

int talk(Connection& stream, const Command& command, uint32_t replicas, Value* value,
         uint32_t* acknowledged) {
  stream.begin(static_cast<uint32_t>(command.words.size()));
  for (const std::string& word : command.words) stream.word(word);
  if (replicas > 0) {
    stream.begin(3);
    stream.word("WAIT");
    stream.word(replicas);
    stream.word(1000);
  }
  stream.flush();
  if (const int result = read_value(stream, value, 0); result != 0) return result;
  if (replicas == 0) return 0;
  Value count;
  if (const int result = read_value(stream, &count, 0); result != 0) return result;
  if (value->type == '-' || count.number >= replicas) return 0;
  if (acknowledged != nullptr)
    *acknowledged = static_cast<uint32_t>(std::max<int64_t>(0, count.number));
  return -EAGAIN;
}

const std::string& Value::field(const std::string& key) const {
  static const auto* const none =
      new std::string;  // never destroyed: leases are given back at the very end
  for (size_t i = 0; i + 1 < items.size(); i += 2)
    if (items[i].text == key) return items[i + 1].text;
  return *none;
}

Result<Value> call_server(Servers& servers, uint32_t server, const Command& command,
                          uint64_t deadline_ns) {
  int error = 0;
  Value value;
  Line* const line = servers.acquire(server, Use::kControl, deadline_ns, &error);
  if (line != nullptr) {
    const bool was_returning = servers.is_returning(server);
    const uint32_t replicas = servers.acknowledging(server, command.replicas);
    uint32_t acknowledged = 0;
    error = talk(line->connection, command, replicas, &value, &acknowledged);
    if (error != 0) line->connection.close();
    servers.release(line);
    if (error == -EAGAIN) servers.note_shortage(server, acknowledged);
    if (error == 0 && replicas > 0 && value.type != '-')
      servers.note_acknowledged(server, was_returning);
    if (error == 0 && replicas < servers.acknowledging(server, command.replicas)) error = -EAGAIN;
  }
  if (error == 0) return value;
  const std::string attempted = std::string("ask server ") + servers.address(server).text;
  if (error == -EACCES)
    return Error{EACCES, attempted +
                             ": it refuses the user or password: write redis://user:"
                             "password@host:port/name"};
  if (Connection::is_refusal(error))
    return Error{-error, attempted + ": it refuses: " + servers.refusal(server).text()};
  return base::system_error(error, attempted);
}

Result<Value> call(Servers& servers, const Command& command, uint64_t deadline_ns) {
  Result<Value> last = Error{ETIMEDOUT, "no server has the slot " + std::to_string(command.slot)};
  for (uint64_t pause_ns = 1'000'000;; pause_ns = std::min<uint64_t>(2 * pause_ns, 100'000'000)) {
    const uint32_t server = servers.server_of(command.slot);
    if (server != Servers::kNobody) {
      const uint64_t until_ns = std::min(deadline_ns, base::now_ns() + Connection::kSilenceNsMax);
      last = call_server(servers, server, command, until_ns);
      if (last.ok() && (last.value().type != '-' || !is_passing(last.value().text))) return last;
      if (last.code() == EACCES) return last;
    }
    if (base::now_ns() >= deadline_ns) break;
    std::atomic<uint32_t> nobody{0};
    os::wait(&nobody, 0, pause_ns);
    servers.refresh(deadline_ns);
  }
  if (!last.ok()) return Error{ETIMEDOUT, last.message()};
  return Error{ETIMEDOUT, "ask the servers: " + last.value().text};
}

}  // namespace outcore::redis
