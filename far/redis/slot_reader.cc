#include "far/redis/slot_reader.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>

#include "core/base/assert.h"

namespace outcore::redis {

int SlotReader::ask(uint32_t server, uint64_t deadline_ns) {
  int error = 0;
  Line* const line = lines_.acquire(server, Use::kControl, deadline_ns, &error);
  if (line == nullptr) return error;
  line->connection.begin(2);
  line->connection.word("CLUSTER");
  line->connection.word("SLOTS");
  line->connection.flush();
  std::fill(std::begin(heard_), std::end(heard_), static_cast<uint16_t>(ServerTable::kNobody));
  error = read_slots(line->connection, server);
  lines_.note_refusal(*line, error);
  if (error != 0) line->connection.close();  // more of the reply may follow
  lines_.release(line);
  if (error != 0) return error;
  // A server that has just come back may not know any other yet.
  if (std::all_of(std::begin(heard_), std::end(heard_),
                  [](uint16_t s) { return s == ServerTable::kNobody; }))
    return -EAGAIN;
  for (uint32_t slot = 0; slot < kSlotCount; ++slot) table_.note_moved(slot, heard_[slot]);
  copies_.judge(server, heard_);
  return 0;
}

// Reads an array of [first, last, [host, port, …], replicas…].
int SlotReader::read_slots(Connection& stream, uint32_t asked) {
  Reply reply;
  if (const int result = stream.read(&reply); result != 0) return result;
  if (reply.type == '-') {
    if (reply.text.find("cluster support disabled") == std::string_view::npos)
      return stream.refuse(reply);
    table_.set_cluster(false);
    std::fill(std::begin(heard_), std::end(heard_), static_cast<uint16_t>(asked));
    return 0;
  }
  table_.set_cluster(true);
  for (int64_t left = reply.number; left > 0; --left) {
    Reply range, first, last;
    if (stream.read(&range) != 0 || stream.read(&first) != 0 || stream.read(&last) != 0)
      return stream.error();
    if (range.number < 3 || first.number < 0 || last.number >= kSlotCount ||
        last.number < first.number)
      return -EPROTO;
    uint32_t master = ServerTable::kNobody;
    for (int64_t node = 2; node < range.number; ++node) {
      uint32_t server = ServerTable::kNobody;
      if (const int result = read_node(stream, asked, &server); result != 0) return result;
      if (node == 2) master = server;
    }
    if (master == ServerTable::kNobody) continue;
    OC_ASSERT(master < table_.count());
    table_.at(master).replicas.store(static_cast<uint32_t>(range.number - 3));
    std::fill(heard_ + first.number, heard_ + last.number + 1, static_cast<uint16_t>(master));
  }
  return 0;
}

// Reads [host, port, and more, depending on the server's version]. A server that does not know its
// own host sends an empty text or nil.
int SlotReader::read_node(Connection& stream, uint32_t asked, uint32_t* server) {
  Reply node, host, port;
  char text[160] = {};
  if (stream.read(&node) != 0 || stream.read(&host) != 0) return stream.error();
  if (host.type == '$') {
    if (host.number > 100) return -EPROTO;
    const auto bytes = static_cast<size_t>(host.number);
    if (stream.read_bytes(std::as_writable_bytes(std::span(text, bytes))) != 0 ||
        stream.end_bytes() != 0)
      return stream.error();
  }
  if (stream.read(&port) != 0) return stream.error();
  size_t used = std::strlen(text);
  text[used++] = ':';
  const char* const end = std::to_chars(text + used, text + sizeof text, port.number).ptr;
  *server = table_.find({text, static_cast<size_t>(end - text)}, asked);
  int64_t left = node.number - 2;  // a nested array adds the count of its items
  while (left-- > 0) {
    Reply more;
    if (stream.read(&more) != 0) return stream.error();
    if (more.type == '*') left += more.number;
    if (more.type == '$' && stream.end_bytes() != 0) return stream.error();
  }
  return 0;
}

}  // namespace outcore::redis
