#include "far/redis/server_table.h"

#include <sys/mman.h>

#include <charconv>
#include <new>

#include "core/base/assert.h"
#include "core/base/clock.h"
#include "core/os/wait.h"

namespace outcore::redis {

ServerTable::ServerTable(ServerOptions options) : options_(std::move(options)) {
  OC_CHECK(options_.read_lines <= Server::kLinesMax && options_.write_lines <= Server::kLinesMax);
  OC_CHECK(options_.read_lines != 0 && options_.write_lines != 0);
  for (auto& slot : slots_) slot.store(kNobody, std::memory_order_relaxed);
  for (const Address& seed : options_.seeds) add(seed);
}

ServerTable::~ServerTable() {
  for (uint32_t i = 0; i < count(); ++i) {
    Server* const server = servers_[i].load();
    server->~Server();
    ::munmap(server, sizeof *server);
  }
}

uint32_t ServerTable::add(const Address& address) {
  const os::SignalBlock block;  // a handler of this thread that faults may come here, too
  while (!adding_.try_lock()) os::yield();  // held for one call of the kernel
  const uint32_t known = count();
  uint32_t number = 0;
  while (number < known && !servers_[number].load()->address.is_same(address)) ++number;
  if (number == known) number = add_new(address);
  adding_.unlock();
  return number;
}

uint32_t ServerTable::add_new(const Address& address) {
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

uint32_t ServerTable::find(std::string_view host_and_port, uint32_t asked) {
  OC_CHECK(asked < count());
  const size_t colon = host_and_port.rfind(':');
  if (colon == std::string_view::npos) return kNobody;
  const std::string_view host = host_and_port.substr(0, colon);
  uint16_t port = 0;
  const char* const end = host_and_port.data() + host_and_port.size();
  if (std::from_chars(host_and_port.data() + colon + 1, end, port).ptr != end) return kNobody;
  Address address;
  if (host.empty()) {  // the server that was asked
    address = at(asked).address;
    auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.socket);
    auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.socket);
    (v4->sin_family == AF_INET ? v4->sin_port : v6->sin6_port) = htons(port);
  } else if (!address.parse_numeric(host, port)) {
    return kNobody;
  }
  return add(address);
}

void ServerTable::note_moved(uint32_t slot, uint32_t server) {
  OC_CHECK(slot < kSlotCount && (server == kNobody || server < count()));
  if (server_of(slot) == server) return;
  Server* const it = server == kNobody ? nullptr : servers_[server].load();
  if (it != nullptr) it->moves_begun.fetch_add(1);
  slots_[slot].store(static_cast<uint16_t>(server));
  if (it != nullptr) it->moves_ended.fetch_add(1);
}

void ServerTable::note_answer(uint32_t server, Use use, bool has_answered) {
  OC_CHECK(server < count());
  auto& since_ns = servers_[server].load()->silent_since_ns[static_cast<size_t>(use)];
  uint64_t seen = since_ns.load(std::memory_order_relaxed);
  if (has_answered && seen != 0) since_ns.store(0, std::memory_order_relaxed);
  if (!has_answered && seen == 0) since_ns.compare_exchange_strong(seen, base::now_ns());
}

}  // namespace outcore::redis
