// ServerTable: the state that the pieces of Servers share: which servers there are, and which slots
// each has. It asks no server.
//
// Any thread; the fault path: memory for new servers comes from the kernel.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>
#include <vector>

#include "far/redis/address.h"
#include "far/redis/generation.h"
#include "far/redis/key_slot.h"
#include "far/redis/line.h"
#include "far/redis/refusal_text.h"

namespace outcore::redis {

struct ServerOptions {
  Access access;
  std::vector<Address> seeds;
  uint32_t read_lines = 4, write_lines = 2;  // for each server, at most Server::kLinesMax
  // There are two single servers. The second is a replica of the first, and can take its place
  // (standby.h).
  bool has_standby = false;
  uint32_t replicas = 0;  // how many must acknowledge a write
  // If there are fewer, and no other replica can come, writes go on with those there are after this
  // time; 0: never.
  uint64_t alone_after_ns = 0;
};

// The required copies at a server: all exist; some are gone, and the server goes on without; all
// exist again, but earlier writes may still be on their way to them.
enum class Copies : uint8_t { kThere, kGone, kReturning };

struct Server {
  static constexpr uint32_t kLinesMax = 16;

  Address address;
  RefusalText refusal;
  std::atomic<uint32_t> replicas{0};
  std::atomic<Copies> copies{Copies::kThere};
  std::atomic<uint32_t> left{0}, acknowledged{0};  // replicas: if kGone; at the last shortage
  std::atomic<uint64_t> short_since_ns{0}, probed_ns{0};
  std::atomic<uint64_t> silent_since_ns[3] = {};
  std::atomic<uint32_t> moves_begun{0}, moves_ended{0};  // moves of slots to this server
  std::atomic<uint32_t> given{0};  // counts releases: a thread that waits for a line sleeps on it
  HeadCount waiting;               // threads that wait for a line for reads
  Line reads[kLinesMax], writes[kLinesMax], control[1];
};

class ServerTable {
 public:
  static constexpr uint32_t kServersMax = 512, kNobody = 0xFFFF;

  explicit ServerTable(ServerOptions options);  // with the seeds
  ~ServerTable();
  ServerTable(const ServerTable&) = delete;
  ServerTable& operator=(const ServerTable&) = delete;

  const ServerOptions& options() const { return options_; }
  bool is_cluster() const { return is_cluster_.load(std::memory_order_acquire); }
  void set_cluster(bool is_one) { is_cluster_.store(is_one, std::memory_order_release); }
  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  Server& at(uint32_t server, std::memory_order order = std::memory_order_seq_cst) const {
    return *servers_[server].load(order);
  }
  // kNobody: there is no room or no memory.
  uint32_t add(const Address& address);
  // See Servers for these.
  uint32_t find(std::string_view host_and_port, uint32_t asked);
  uint32_t server_of(uint32_t slot) const { return slots_[slot].load(std::memory_order_relaxed); }
  void note_moved(uint32_t slot, uint32_t server);
  uint32_t epoch(uint32_t server) const {
    const Server& it = at(server);
    const uint32_t ended = it.moves_ended.load();
    return ended == it.moves_begun.load() ? ended + 1 : 0;
  }
  void note_answer(uint32_t server, Use use, bool has_answered);

 private:
  uint32_t add_new(const Address& address);

  const ServerOptions options_;
  std::atomic<bool> is_cluster_{false};
  std::atomic<uint32_t> count_{0};
  std::atomic<Server*> servers_[kServersMax] = {};
  std::atomic<uint16_t> slots_[kSlotCount];
  Holder adding_;
};

}  // namespace outcore::redis
