#include "far/redis/lines.h"

#include <cerrno>
#include <charconv>
#include <string_view>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/wait.h"

namespace outcore::redis {
namespace {

// 0 or -errno. -EACCES: the user may not ask.
int ask_id(Connection& stream, uint64_t* id) {
  Reply reply;
  if (const int result = stream.ask({"CLIENT", "ID"}, &reply); result != 0) return result;
  if (reply.type != ':') return stream.refuse(reply);
  *id = static_cast<uint64_t>(reply.number);
  return 0;
}

}  // namespace

int Lines::open(Line& line, uint32_t server, Use use, uint64_t deadline_ns) {
  const uint32_t ours = generation();
  if (line.opened_by == ours && line.connection.is_open()) return 0;
  line.opened_by = ours;
  line.is_fresh = true;
  line.server = server;
  line.client_id = 0;
  int result =
      line.connection.open(table_.at(server).address, table_.options().access, deadline_ns);
  if (result == 0 && use == Use::kWrite) result = ask_id(line.connection, &line.client_id);
  if (result != 0) {
    note_refusal(line, result);
    line.connection.close();
  }
  return result;
}

void Lines::note_refusal(const Line& line, int error) {
  if (Connection::is_refusal(error)) table_.at(line.server).refusal.note(line.connection.refusal());
}

std::span<Line> Lines::lines_of(uint32_t server, Use use) const {
  OC_CHECK(server < table_.count());
  Server& it = table_.at(server, std::memory_order_acquire);
  if (use == Use::kRead) return {it.reads, table_.options().read_lines};
  if (use == Use::kWrite) return {it.writes, table_.options().write_lines};
  return it.control;
}

Line* Lines::acquire(uint32_t server, Use use, uint64_t deadline_ns, int* error) {
  Server& it = table_.at(server, std::memory_order_acquire);
  for (;;) {
    const uint32_t given = it.given.load(std::memory_order_acquire);
    for (Line& line : lines_of(server, use)) {
      if (!line.holder.try_lock()) continue;
      *error = open(line, server, use, deadline_ns);
      if (*error == 0) {
        OC_ASSERT(line.connection.is_open() && line.server == server);
        line.connection.set_deadline(deadline_ns);
        return &line;
      }
      release(&line);
      return nullptr;
    }
    if (base::now_ns() >= deadline_ns) {
      *error = -EBUSY;
      return nullptr;
    }
    if (use == Use::kRead) it.waiting.enter();
    os::wait(&it.given, given, 50'000'000);
    if (use == Use::kRead) it.waiting.leave();
  }
}

Line* Lines::try_acquire(uint32_t server, Use use, bool* is_unopened) {
  *is_unopened = false;
  if (use == Use::kRead && has_waiting(server)) return nullptr;
  for (Line& line : lines_of(server, use)) {
    if (!line.holder.try_lock()) continue;
    const bool is_open = line.opened_by == generation() && line.connection.is_open();
    if (is_open && is_checked(line, server)) return &line;
    line.server = server;
    release(&line);
    *is_unopened = true;
    return nullptr;
  }
  return nullptr;
}

void Lines::release(Line* line) {
  OC_CHECK(line != nullptr && line->server < table_.count());
  Server& it = table_.at(line->server, std::memory_order_acquire);
  if (!line->connection.is_open()) line->connection.close();
  line->holder.unlock();
  it.given.fetch_add(1, std::memory_order_release);
  os::wake(&it.given, 1);
}

// If two threads come here, both ask: nothing is written before the server has answered.
int Lines::end_abandoned(Line& line) {
  OC_ASSERT(line.server < table_.count());
  for (Line& other : lines_of(line.server, Use::kWrite)) {
    uint64_t id = other.abandoned_id.load();
    if (id == 0) continue;
    char text[24];
    const std::string_view digits(
        text, static_cast<size_t>(std::to_chars(text, text + sizeof text, id).ptr - text));
    Reply reply;
    if (const int result = line.connection.ask({"CLIENT", "KILL", "ID", digits}, &reply);
        result != 0)
      return result;
    if (reply.type != ':') return line.connection.refuse(reply);
    other.abandoned_id.compare_exchange_strong(id, 0);
  }
  return 0;
}

}  // namespace outcore::redis
