// Servers: which servers there are, which slots each has, and the connections to each.
//
// Any thread; without TLS the fault path, too: memory for new servers comes from the kernel, locks
// are held for bounded times, and waits end at a deadline. A forked child opens connections of its
// own.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "far/redis/connection.h"
#include "far/redis/generation.h"
#include "far/redis/key_slot.h"

namespace outcore::redis {

// Writes have connections of their own, so that they do not wait behind fills, and so that WAIT
// counts exactly what was written.
enum class Use : uint8_t { kRead, kWrite, kControl };

// Line: a connection, and who holds it.
struct Line {
  Connection connection;
  // Opened since check_fresh() was last asked: the server may contain older data than before. The
  // same is true if its epoch differs from the one of the last check.
  bool is_fresh = false;
  uint32_t epoch = 0;

  // Ends the connection in the middle of what was sent. A write that is still on its way must not
  // be carried out after what is sent instead of it: see end_abandoned().
  void abandon();

 private:
  friend class Servers;
  Holder holder;
  uint32_t opened_by = 0;  // the generation of the process that opened it
  uint32_t server = 0;
  uint64_t client_id = 0;  // how the server names this connection, if it is for writes
  std::atomic<uint64_t> abandoned_id{0};
};

class Servers {
 public:
  static constexpr uint32_t kServersMax = 512, kNobody = 0xFFFF;
  static constexpr uint64_t kAskNs = 700'000'000;  // silent for so long: the next one is asked

  struct Options {
    Access access;
    std::vector<Address> seeds;
    uint32_t read_lines = 4, write_lines = 2;  // for each server, at most kLinesMax
    // There are two single servers. The second is a replica of the first, and can take its place
    // (standby.cc).
    bool has_standby = false;
    uint32_t replicas = 0;  // how many must acknowledge a write
    // If there are fewer, and no other replica can come, writes go on with those there are after
    // this time; 0: never.
    uint64_t alone_after_ns = 0;
  };
  static constexpr uint32_t kLinesMax = 16;

  // Opens nothing before refresh().
  explicit Servers(Options options);
  ~Servers();
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  // Asks one server after the other who has which slots, until one answers. 0, or the last -errno.
  // If another thread is asking already, waits for its result instead.
  int refresh(uint64_t deadline_ns);
  bool is_cluster() const { return is_cluster_.load(std::memory_order_acquire); }
  uint32_t count() const { return count_.load(std::memory_order_acquire); }
  const Address& address(uint32_t server) const { return servers_[server].load()->address; }
  // kNobody: no server has the slot now.
  uint32_t server_of(uint32_t slot) const { return slots_[slot].load(std::memory_order_relaxed); }
  // A server said that the slot has moved to `server`.
  void note_moved(uint32_t slot, uint32_t server);
  // A number that changes whenever a slot has moved to the server; 0 while one moves there.
  uint32_t epoch(uint32_t server) const {
    const Server& it = *servers_[server].load();
    const uint32_t ended = it.moves_ended.load();
    return ended == it.moves_begun.load() ? ended + 1 : 0;
  }
  bool is_checked(const Line& line, uint32_t server) const {
    return !line.is_fresh && line.epoch != 0 && line.epoch == epoch(server);
  }
  // How many replicas the server's slots had when a server was last asked.
  uint32_t replicas_of(uint32_t server) const { return servers_[server].load()->replicas.load(); }
  // The server at an address of a redirection, "host:port". kNobody: there is no room for another
  // server, or the host is a name, which cannot be looked up here.
  uint32_t find(std::string_view host_and_port, uint32_t asked);

  // How many replicas of a server can acknowledge a write. Fewer than `wanted` if the server has
  // lost some and goes on without them (copies.cc), if it is a standby that has taken over, or if
  // its standby was given up. Ask before a write is sent and after its replies have come: if the
  // number has grown meanwhile, write again.
  uint32_t acknowledging(uint32_t server, uint32_t wanted) const;
  // Only so many acknowledged. refresh() finds out whether more can be expected.
  void note_shortage(uint32_t server, uint32_t acknowledged);
  // As many as were asked for have acknowledged. `was_returning`: is_returning() when the write was
  // sent.
  void note_acknowledged(uint32_t server, bool was_returning);
  bool is_returning(uint32_t server) const {
    return servers_[server].load()->copies.load() == Copies::kReturning;
  }
  // For a server that goes on without replicas: true once in a while, for a caller that then asks
  // whether a replica is back, and calls note_found() if it is.
  bool may_probe(uint32_t server);
  void note_found(uint32_t server);
  // A server has lacked required replicas for `after_ns`: then nothing is written to any server, so
  // that writers stop soon. Once in a while this asks whether the replicas are back.
  bool is_stopped(uint64_t after_ns);
  // Whether something that was written has fewer copies than it should have.
  bool is_unreplicated() const;
  // A standby has taken its place: what this server says and accepts is no longer valid.
  bool is_retired(uint32_t server) const {
    return options_.has_standby && server == 0 && turn_.load() >= Turn::kChanges;
  }

  // Since when a server has not answered any request of this use; 0: it answers.
  uint64_t silent_since_ns(uint32_t server, Use use) const {
    return servers_[server].load()->silent_since_ns[static_cast<size_t>(use)].load();
  }
  void note_answer(uint32_t server, Use use, bool has_answered);

  // Takes an open connection for this thread alone. nullptr: *error is -errno; -EBUSY: all were
  // held until the deadline.
  Line* acquire(uint32_t server, Use use, uint64_t deadline_ns, int* error);
  // Takes a connection that is free and was checked before, without waiting, and only if no thread
  // waits for one. nullptr: *is_unopened says whether acquire() would open another.
  Line* try_acquire(uint32_t server, Use use, bool* is_unopened);
  void release(Line* line);
  // Whether a thread waits in acquire(). It must not be passed over for ever.
  bool has_waiting(uint32_t server) const { return servers_[server].load()->waiting.is_any(); }
  // Call before a write is sent: makes the server close our abandoned connections, with a command
  // on this line. 0 or -errno of the connection.
  int end_abandoned(Line& line);

 private:
  // The required copies at a server: all exist; some are gone, and the server goes on without; all
  // exist again, but earlier writes may still be on their way to them.
  enum class Copies : uint8_t { kThere, kGone, kReturning };
  struct Server {
    Address address;
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

  uint32_t add(const Address& address);
  uint32_t add_new(const Address& address);
  int ask(uint32_t server, uint64_t deadline_ns);
  int ask_any(uint64_t deadline_ns);
  int ask_pair(uint64_t deadline_ns);
  void judge_copies(uint32_t asked);
  bool has_replicas(uint32_t server);
  static bool is_time_to_probe(Server& server, uint64_t now_ns);
  uint32_t acknowledging_of_pair(uint32_t server, uint32_t wanted) const;
  int look_at_standby(bool is_first_gone, uint64_t deadline_ns);
  int make_standby_serve(uint64_t deadline_ns);
  int read_slots(Connection& stream, uint32_t asked);
  int read_node(Connection& stream, uint32_t asked, uint32_t* server);
  int open(Line& line, uint32_t server, Use use, uint64_t deadline_ns);
  std::span<Line> lines_of(uint32_t server, Use use) const;

  const Options options_;
  std::atomic<bool> is_cluster_{false};
  std::atomic<uint32_t> count_{0};
  std::atomic<Server*> servers_[kServersMax] = {};
  std::atomic<uint16_t> slots_[kSlotCount];
  Holder adding_, asking_;
  std::atomic<uint32_t> asked_{0};  // counts replies
  std::atomic<uint32_t> next_{0};   // the server to ask first
  // Of a pair: who serves. kFirst and kFirstAlone: the first, with and without its standby.
  // kChanges: the standby, as soon as it has become the master; this cannot be undone.
  enum class Turn : uint8_t { kFirst, kFirstAlone, kChanges, kSecond };
  std::atomic<Turn> turn_{Turn::kFirst};
  std::atomic<bool> is_short_{false};
  // Used by the holder of asking_: since when the first server, or the standby, has not answered,
  // and when that was last seen.
  struct Silence {
    uint64_t since_ns = 0, seen_ns = 0;
    // The server is silent now. Returns for how long it has been.
    uint64_t extend(uint64_t now_ns);
    void end() { since_ns = 0; }
  } first_silence_, standby_silence_;
  uint16_t heard_[kSlotCount];  // used by the holder of asking_
};

}  // namespace outcore::redis
