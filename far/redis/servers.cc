#include "far/redis/servers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/wait.h"

namespace outcore::redis {
namespace {

// 0 or -errno. -EACCES: the user may not ask.
int ask_id(Connection& stream, uint64_t* id) {
  Reply reply;
  if (const int result = stream.ask({"CLIENT", "ID"}, &reply); result != 0) return result;
  if (reply.type != ':') return -EACCES;
  *id = static_cast<uint64_t>(reply.number);
  return 0;
}

}  // namespace

void Line::abandon() {
  if (client_id != 0) abandoned_id.store(client_id);
  connection.abandon();
}

Servers::Servers(Options options) : options_(std::move(options)) {
  OC_CHECK(options_.read_lines <= kLinesMax && options_.write_lines <= kLinesMax);
  OC_CHECK(options_.read_lines != 0 && options_.write_lines != 0);
  for (auto& slot : slots_) slot.store(kNobody, std::memory_order_relaxed);
  for (const Address& seed : options_.seeds) add(seed);
}

Servers::~Servers() {
  for (uint32_t i = 0; i < count(); ++i) {
    Server* const server = servers_[i].load();
    server->~Server();
    ::munmap(server, sizeof *server);
  }
}

// kNobody: there is no room or no memory.
uint32_t Servers::add(const Address& address) {
  const os::SignalBlock block;  // a handler of this thread that faults may come here, too
  while (!adding_.try_lock()) os::yield();  // held for one call of the kernel
  const uint32_t known = count();
  uint32_t number = 0;
  while (number < known && !servers_[number].load()->address.is_same(address)) ++number;
  if (number == known) number = add_new(address);
  adding_.unlock();
  return number;
}

uint32_t Servers::add_new(const Address& address) {
  const uint32_t number = count();
  OC_CHECK(number <= kServersMax);
  if (number == kServersMax) return kNobody;
  void* const memory =
      ::mmap(nullptr, sizeof(Server), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return kNobody;
  auto* const server = new (memory) Server;
  server->address = address;
  servers_[number].store(server, std::memory_order_release);
  count_.store(number + 1, std::memory_order_release);
  return number;
}

uint32_t Servers::find(std::string_view host_and_port, uint32_t asked) {
  OC_CHECK(asked < count());
  const size_t colon = host_and_port.rfind(':');
  if (colon == std::string_view::npos) return kNobody;
  const std::string_view host = host_and_port.substr(0, colon);
  uint16_t port = 0;
  const char* const end = host_and_port.data() + host_and_port.size();
  if (std::from_chars(host_and_port.data() + colon + 1, end, port).ptr != end) return kNobody;
  Address address;
  if (host.empty()) {  // the server that was asked
    address = this->address(asked);
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.socket);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.socket);
    (v4->sin_family == AF_INET ? v4->sin_port : v6->sin6_port) = htons(port);
  } else if (!address.parse_numeric(host, port)) {
    return kNobody;
  }
  return add(address);
}

int Servers::open(Line& line, uint32_t server, Use use, uint64_t deadline_ns) {
  const uint32_t ours = generation();
  if (line.opened_by == ours && line.connection.is_open()) return 0;
  line.opened_by = ours;
  line.is_fresh = true;
  line.server = server;
  line.client_id = 0;
  int result = line.connection.open(address(server), options_.access, deadline_ns);
  if (result == 0 && use == Use::kWrite) result = ask_id(line.connection, &line.client_id);
  if (result != 0) line.connection.close();
  return result;
}

std::span<Line> Servers::lines_of(uint32_t server, Use use) const {
  OC_CHECK(server < count());
  Server& it = *servers_[server].load(std::memory_order_acquire);
  if (use == Use::kRead) return {it.reads, options_.read_lines};
  if (use == Use::kWrite) return {it.writes, options_.write_lines};
  return it.control;
}

Line* Servers::acquire(uint32_t server, Use use, uint64_t deadline_ns, int* error) {
  Server& it = *servers_[server].load(std::memory_order_acquire);
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

Line* Servers::try_acquire(uint32_t server, Use use, bool* is_unopened) {
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

// If two threads come here, both ask: nothing is written before the server has answered.
int Servers::end_abandoned(Line& line) {
  OC_ASSERT(line.server < count());
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
    if (reply.type != ':') return -EACCES;
    other.abandoned_id.compare_exchange_strong(id, 0);
  }
  return 0;
}

void Servers::note_answer(uint32_t server, Use use, bool has_answered) {
  OC_CHECK(server < count());
  auto& since_ns = servers_[server].load()->silent_since_ns[static_cast<size_t>(use)];
  uint64_t seen = since_ns.load(std::memory_order_relaxed);
  if (has_answered && seen != 0) since_ns.store(0, std::memory_order_relaxed);
  if (!has_answered && seen == 0) since_ns.compare_exchange_strong(seen, base::now_ns());
}

void Servers::release(Line* line) {
  OC_CHECK(line != nullptr && line->server < count());
  Server& it = *servers_[line->server].load(std::memory_order_acquire);
  if (!line->connection.is_open()) line->connection.close();
  line->holder.unlock();
  it.given.fetch_add(1, std::memory_order_release);
  os::wake(&it.given, 1);
}

int Servers::refresh(uint64_t deadline_ns) {
  const uint32_t before = asked_.load(std::memory_order_acquire);
  while (!asking_.try_lock()) {
    os::wait(&asked_, before, 20'000'000);
    if (asked_.load(std::memory_order_acquire) != before) return 0;
    if (base::now_ns() >= deadline_ns) return -ETIMEDOUT;
  }
  const int result = options_.has_standby ? ask_pair(deadline_ns) : ask_any(deadline_ns);
  asked_.fetch_add(1, std::memory_order_release);
  asking_.unlock();
  os::wake_all(&asked_);
  return result;
}

int Servers::ask_any(uint64_t deadline_ns) {
  int result = -EHOSTUNREACH;
  const uint32_t known = count();
  for (uint32_t i = 0; i < known && result != 0; ++i) {
    const uint64_t now_ns = base::now_ns();
    if (i > 0 && now_ns >= deadline_ns) break;
    const uint32_t server = next_.fetch_add(1, std::memory_order_relaxed) % known;
    result = ask(server, std::min(deadline_ns, now_ns + kAskNs));
  }
  return result;
}

int Servers::ask(uint32_t server, uint64_t deadline_ns) {
  int error = 0;
  Line* const line = acquire(server, Use::kControl, deadline_ns, &error);
  if (line == nullptr) return error;
  line->connection.begin(2);
  line->connection.word("CLUSTER");
  line->connection.word("SLOTS");
  line->connection.flush();
  std::fill(std::begin(heard_), std::end(heard_), static_cast<uint16_t>(kNobody));
  error = read_slots(line->connection, server);
  if (error != 0) line->connection.close();  // more of the reply may follow
  release(line);
  if (error != 0) return error;
  // A server that has just come back may not know any other yet.
  if (std::all_of(std::begin(heard_), std::end(heard_), [](uint16_t s) { return s == kNobody; }))
    return -EAGAIN;
  for (uint32_t slot = 0; slot < kSlotCount; ++slot) note_moved(slot, heard_[slot]);
  judge_copies(server);
  return 0;
}

void Servers::note_moved(uint32_t slot, uint32_t server) {
  OC_CHECK(slot < kSlotCount && (server == kNobody || server < count()));
  if (server_of(slot) == server) return;
  Server* const it = server == kNobody ? nullptr : servers_[server].load();
  if (it != nullptr) it->moves_begun.fetch_add(1);
  slots_[slot].store(static_cast<uint16_t>(server));
  if (it != nullptr) it->moves_ended.fetch_add(1);
}

// Reads an array of [first, last, [host, port, …], replicas…].
int Servers::read_slots(Connection& stream, uint32_t asked) {
  Reply reply;
  if (const int result = stream.read(&reply); result != 0) return result;
  if (reply.type == '-') {
    if (reply.text.find("cluster support disabled") == std::string_view::npos) return -EACCES;
    is_cluster_.store(false, std::memory_order_release);
    std::fill(std::begin(heard_), std::end(heard_), static_cast<uint16_t>(asked));
    return 0;
  }
  is_cluster_.store(true, std::memory_order_release);
  for (int64_t left = reply.number; left > 0; --left) {
    Reply range, first, last;
    if (stream.read(&range) != 0 || stream.read(&first) != 0 || stream.read(&last) != 0)
      return stream.error();
    if (range.number < 3 || first.number < 0 || last.number >= kSlotCount ||
        last.number < first.number)
      return -EPROTO;
    uint32_t master = kNobody;
    for (int64_t node = 2; node < range.number; ++node) {
      uint32_t server = kNobody;
      if (const int result = read_node(stream, asked, &server); result != 0) return result;
      if (node == 2) master = server;
    }
    if (master == kNobody) continue;
    OC_ASSERT(master < count());
    servers_[master].load()->replicas.store(static_cast<uint32_t>(range.number - 3));
    std::fill(heard_ + first.number, heard_ + last.number + 1, static_cast<uint16_t>(master));
  }
  return 0;
}

// Reads [host, port, and more, depending on the server's version]. A server that does not know its
// own host sends an empty text or nil.
int Servers::read_node(Connection& stream, uint32_t asked, uint32_t* server) {
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
  *server = find({text, static_cast<size_t>(end - text)}, asked);
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
