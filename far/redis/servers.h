// Servers: which servers there are, which slots each has, and the connections to each.
//
// Any thread; without TLS the fault path, too: memory for new servers comes from the kernel, locks
// are held for bounded times, and waits end at a deadline. A forked child opens connections of its
// own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "far/redis/copy_watch.h"
#include "far/redis/generation.h"
#include "far/redis/line.h"
#include "far/redis/lines.h"
#include "far/redis/server_table.h"
#include "far/redis/slot_reader.h"
#include "far/redis/standby.h"

namespace outcore::redis {

class Servers {
 public:
  static constexpr uint32_t kServersMax = ServerTable::kServersMax;
  static constexpr uint32_t kNobody = ServerTable::kNobody, kLinesMax = Server::kLinesMax;
  using Options = ServerOptions;

  // Opens nothing before refresh().
  explicit Servers(Options options);

  // Asks one server after the other who has which slots, until one answers. 0, or the last -errno.
  // If another thread is asking already, waits for its result instead.
  int refresh(uint64_t deadline_ns);
  bool is_cluster() const { return table_.is_cluster(); }
  uint32_t count() const { return table_.count(); }
  const Address& address(uint32_t server) const { return table_.at(server).address; }
  const RefusalText& refusal(uint32_t server) const { return table_.at(server).refusal; }
  // kNobody: no server has the slot now.
  uint32_t server_of(uint32_t slot) const { return table_.server_of(slot); }
  // A server said that the slot has moved to `server`.
  void note_moved(uint32_t slot, uint32_t server) { table_.note_moved(slot, server); }
  // A number that changes whenever a slot has moved to the server; 0 while one moves there.
  uint32_t epoch(uint32_t server) const { return table_.epoch(server); }
  bool is_checked(const Line& line, uint32_t server) const {
    return lines_.is_checked(line, server);
  }
  // How many replicas the server's slots had when a server was last asked.
  uint32_t replicas_of(uint32_t server) const { return table_.at(server).replicas.load(); }
  // The server at an address of a redirection, "host:port". kNobody: there is no room for another
  // server, or the host is a name, which cannot be looked up here.
  uint32_t find(std::string_view host_and_port, uint32_t asked) {
    return table_.find(host_and_port, asked);
  }

  // How many replicas of a server can acknowledge a write. Fewer than `wanted` if the server has
  // lost some and goes on without them (copy_watch.h), if it is a standby that has taken over, or
  // if its standby was given up. Ask before a write is sent and after its replies have come: if the
  // number has grown meanwhile, write again.
  uint32_t acknowledging(uint32_t server, uint32_t wanted) const {
    return table_.options().has_standby ? standby_.acknowledging(server, wanted)
                                        : copies_.acknowledging(server, wanted);
  }
  // Only so many acknowledged. refresh() finds out whether more can be expected.
  void note_shortage(uint32_t server, uint32_t acknowledged) {
    copies_.note_shortage(server, acknowledged);
  }
  // As many as were asked for have acknowledged. `was_returning`: is_returning() when the write was
  // sent.
  void note_acknowledged(uint32_t server, bool was_returning) {
    copies_.note_acknowledged(server, was_returning);
  }
  bool is_returning(uint32_t server) const { return copies_.is_returning(server); }
  // For a server that goes on without replicas: true once in a while, for a caller that then asks
  // whether a replica is back, and calls note_found() if it is.
  bool may_probe(uint32_t server) { return copies_.may_probe(server); }
  void note_found(uint32_t server) { copies_.note_found(server); }
  // A server has lacked required replicas for `after_ns`: then nothing is written to any server, so
  // that writers stop soon. Once in a while this asks whether the replicas are back.
  bool is_stopped(uint64_t after_ns);
  // Whether something that was written has fewer copies than it should have.
  bool is_unreplicated() const {
    if (table_.options().replicas == 0) return false;
    return table_.options().has_standby ? standby_.is_alone() : copies_.is_unreplicated();
  }
  // A standby has taken its place: what this server says and accepts is no longer valid.
  bool is_retired(uint32_t server) const {
    return table_.options().has_standby && standby_.is_retired(server);
  }

  // As Standby::set_check().
  void set_check(CopyCheck* check) { standby_.set_check(check); }

  // Since when a server has not answered any request of this use; 0: it answers.
  uint64_t silent_since_ns(uint32_t server, Use use) const {
    return table_.at(server).silent_since_ns[static_cast<size_t>(use)].load();
  }
  void note_answer(uint32_t server, Use use, bool has_answered) {
    table_.note_answer(server, use, has_answered);
  }

  // Takes an open connection for this thread alone. nullptr: *error is -errno; -EBUSY: all were
  // held until the deadline.
  Line* acquire(uint32_t server, Use use, uint64_t deadline_ns, int* error) {
    return lines_.acquire(server, use, deadline_ns, error);
  }
  // Takes a connection that is free and was checked before, without waiting, and only if no thread
  // waits for one. nullptr: *is_unopened says whether acquire() would open another.
  Line* try_acquire(uint32_t server, Use use, bool* is_unopened) {
    return lines_.try_acquire(server, use, is_unopened);
  }
  void release(Line* line) { lines_.release(line); }
  // Whether a thread waits in acquire(). It must not be passed over for ever.
  bool has_waiting(uint32_t server) const { return lines_.has_waiting(server); }
  // Call before a write is sent: makes the server close our abandoned connections, with a command
  // on this line. 0 or -errno of the connection.
  int end_abandoned(Line& line) { return lines_.end_abandoned(line); }
  void note_refusal(const Line& line, int error) { lines_.note_refusal(line, error); }

 private:
  int ask_any(uint64_t deadline_ns);
  bool has_replicas(uint32_t server);

  ServerTable table_;
  // Each holds references to some of those above it.
  Lines lines_;
  CopyWatch copies_;
  SlotReader slot_reader_;  // used by the holder of asking_
  Standby standby_;
  Holder asking_;
  std::atomic<uint32_t> asked_{0};  // counts replies
  std::atomic<uint32_t> next_{0};   // the server to ask first
};

}  // namespace outcore::redis
