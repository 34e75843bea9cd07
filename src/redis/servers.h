// Servers: who there is, who keeps which slots, and the connections to each.
//
// Any thread, the fault path too unless TLS is used: memory for a server that turns up comes from
// the kernel, locks are held for bounded times, waits end at a deadline. A forked child opens
// connections of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "redis/connection.h"
#include "redis/generation.h"
#include "redis/key_slot.h"

namespace outcore::redis {

// Writes have connections of their own, so that none waits behind a fill, and so that WAIT counts
// what was written there.
enum class Use : uint8_t { kRead, kWrite, kControl };

// Line: a connection and its holder.
struct Line {
  Connection connection;
  // Opened since check_fresh() was last asked: what the server holds may be older than it was.
  bool is_fresh = false;

 private:
  friend class Servers;
  Holder holder;
  uint32_t opened_by = 0;  // a generation
  uint32_t server = 0;
};

class Servers {
 public:
  static constexpr uint32_t kServersMax = 512, kNobody = 0xFFFF;

  struct Options {
    Access access;
    std::vector<Address> seeds;
    uint32_t read_lines = 4, write_lines = 2;  // to each server, at most kLinesMax
  };
  static constexpr uint32_t kLinesMax = 16;

  // Nothing is opened before refresh().
  explicit Servers(Options options);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // Asks one server after the other who keeps which slots, until one answers. 0, or the last
  // -errno. If another thread is asking, waits for its answer instead.
  int refresh(uint64_t deadline_ns);
  bool is_cluster() const { return is_cluster_.load(std::memory_order_acquire); }
  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  const Address& address(uint32_t server) const { return servers_[server].load()->address; }
  // kNobody: no server has it now.
  uint32_t server_of(uint32_t slot) const { return slots_[slot].load(std::memory_order_relaxed); }
  // What a server said: the slot has moved there.
  void note_moved(uint32_t slot, uint32_t server) {
    slots_[slot].store(static_cast<uint16_t>(server), std::memory_order_relaxed);
  }
  // How many replicas the server's slots had when it was last asked.
  uint32_t replicas_of(uint32_t server) const { return servers_[server].load()->replicas.load(); }
  // The number of a server by its address in a redirection, "host:port". kNobody: no room for it,
  // or a host's name, which cannot be looked up here.
  uint32_t find(std::string_view host_and_port, uint32_t asked);

  // A connection that is this thread's alone, open. nullptr: *error is -errno, -EBUSY if all are
  // held until the deadline.
  Line* take(uint32_t server, Use use, uint64_t deadline_ns, int* error);
  void give(Line* line);

 private:
  struct Server {
    Address address;
    std::atomic<uint32_t> replicas{0};
    std::atomic<uint32_t> given{0};  // counts: who waits for a line sleeps on it
    Line reads[kLinesMax], writes[kLinesMax], control[1];
  };

  uint32_t add(const Address& address);
  uint32_t add_new(const Address& address);
  int ask(uint32_t server, uint64_t deadline_ns);
  int read_slots(Connection& stream, uint32_t asked);
  int read_node(Connection& stream, uint32_t asked, uint32_t* server);
  int open(Line& line, uint32_t server, uint64_t deadline_ns);

  const Options options_;
  std::atomic<bool> is_cluster_{false};
  std::atomic<uint32_t> count_{0};
  std::atomic<Server*> servers_[kServersMax] = {};
  std::atomic<uint16_t> slots_[kSlotCount];
  Holder adding_, asking_;
  std::atomic<uint32_t> asked_{0};  // counts answers
  std::atomic<uint32_t> next_{0};   // whom to ask first
  uint16_t heard_[kSlotCount];      // of whoever holds asking_
};

}  // namespace outcore::redis
