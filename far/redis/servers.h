// Servers: who there is, who keeps which slots, and the connections to each.
//
// Any thread, the fault path too unless TLS is used: memory for a server that turns up comes from
// the kernel, locks are held for bounded times, waits end at a deadline. A forked child opens
// connections of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "far/redis/connection.h"
#include "far/redis/generation.h"
#include "far/redis/key_slot.h"

namespace outcore::redis {

// Writes have connections of their own, so that none waits behind a fill, and so that WAIT counts
// what was written there.
enum class Use : uint8_t { kRead, kWrite, kControl };

// Line: a connection and its holder.
struct Line {
  Connection connection;
  // Opened since check_fresh() was last asked: what the server holds may be older than it was. So
  // it may where another epoch of the server has begun than that of the last check.
  bool is_fresh = false;
  uint32_t epoch = 0;

  // The connection ends in the middle of what was sent. A write that is still on its way there must
  // not be carried out after what is sent instead of it: see end_abandoned().
  void abandon();

 private:
  friend class Servers;
  Holder holder;
  uint32_t opened_by = 0;  // a generation
  uint32_t server = 0;
  uint64_t client_id = 0;  // what the server calls this connection, of one for writes
  std::atomic<uint64_t> abandoned_id{0};
};

class Servers {
 public:
  static constexpr uint32_t kServersMax = 512, kNobody = 0xFFFF;
  static constexpr uint64_t kAskNs = 700'000'000;  // silent for so long: the next one is asked

  struct Options {
    Access access;
    std::vector<Address> seeds;
    uint32_t read_lines = 4, write_lines = 2;  // to each server, at most kLinesMax
    // Two single servers: the second is a replica of the first and takes its place (standby.cc).
    bool has_standby = false;
    uint32_t replicas = 0;  // that are to acknowledge what is written
    // Where there are fewer, and no other can come, it goes on with them after so long; 0: never.
    uint64_t alone_after_ns = 0;
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
  void note_moved(uint32_t slot, uint32_t server);
  // Another one whenever a slot has come to the server; 0 while one comes.
  uint32_t epoch(uint32_t server) const {
    const Server& it = *servers_[server].load();
    const uint32_t ended = it.moves_ended.load();
    return ended == it.moves_begun.load() ? ended + 1 : 0;
  }
  bool is_checked(const Line& line, uint32_t server) const {
    return !line.is_fresh && line.epoch != 0 && line.epoch == epoch(server);
  }
  // How many replicas the server's slots had when it was last asked.
  uint32_t replicas_of(uint32_t server) const { return servers_[server].load()->replicas.load(); }
  // The number of a server by its address in a redirection, "host:port". kNobody: no room for it,
  // or a host's name, which cannot be looked up here.
  uint32_t find(std::string_view host_and_port, uint32_t asked);

  // How many replicas of a server can acknowledge what is written: fewer than `wanted` if it has
  // lost some and goes on without (copies.cc), if it is a standby that serves, or one whose standby
  // is given up. Asked before something is written and after its answers have come: if it is more
  // then, it is to be written again.
  uint32_t acknowledging(uint32_t server, uint32_t wanted) const;
  // So few acknowledged: refresh() finds out whether more can be waited for.
  void note_shortage(uint32_t server, uint32_t acknowledged);
  // As many as were asked for did. `was_returning`: is_returning() when it was sent.
  void note_acknowledged(uint32_t server, bool was_returning);
  bool is_returning(uint32_t server) const {
    return servers_[server].load()->copies.load() == Copies::kReturning;
  }
  // Of one that goes on without: once in a while somebody asks whether a replica is there again,
  // and says so if it is.
  bool may_probe(uint32_t server);
  void note_found(uint32_t server);
  // A server has lacked replicas for so long that must be there: nothing is written anywhere, so
  // that whoever writes stops soon. Once in a while this looks whether they are there again.
  bool is_stopped(uint64_t after_ns);
  // Something that was written has fewer copies than it should have.
  bool is_unreplicated() const;
  // A standby serves in its place. What it says and takes is worth nothing any more.
  bool is_retired(uint32_t server) const {
    return options_.has_standby && server == 0 && turn_.load() >= Turn::kChanges;
  }

  // Since when a server has answered nothing of what it was asked for this use; 0: it answers.
  uint64_t silent_since_ns(uint32_t server, Use use) const {
    return servers_[server].load()->silent_since_ns[static_cast<size_t>(use)].load();
  }
  void note_answer(uint32_t server, Use use, bool has_answered);

  // A connection that is this thread's alone, open. nullptr: *error is -errno, -EBUSY if all are
  // held until the deadline.
  Line* take(uint32_t server, Use use, uint64_t deadline_ns, int* error);
  // One that is free and was asked before, without waiting, and unless somebody waits. nullptr:
  // *is_unopened tells whether take() would open another.
  Line* try_take(uint32_t server, Use use, bool* is_unopened);
  void give(Line* line);
  // Somebody waits in take(), who must not be passed over for ever.
  bool has_waiting(uint32_t server) const { return servers_[server].load()->waiting.is_any(); }
  // Before anything is written: connections that were abandoned are closed on the server's side, by
  // this one. 0 or -errno of the connection.
  int end_abandoned(Line& line);

 private:
  // Of what a server was to have: all; fewer, and it goes on without; all again, but what was
  // written meanwhile may still be on its way.
  enum class Copies : uint8_t { kThere, kGone, kReturning };
  struct Server {
    Address address;
    std::atomic<uint32_t> replicas{0};
    std::atomic<Copies> copies{Copies::kThere};
    std::atomic<uint32_t> left{0}, acknowledged{0};  // replicas: of kGone; of the last shortage
    std::atomic<uint64_t> short_since_ns{0}, probed_ns{0};
    std::atomic<uint64_t> silent_since_ns[3] = {};
    std::atomic<uint32_t> moves_begun{0}, moves_ended{0};  // of slots, to this server
    std::atomic<uint32_t> given{0};  // counts: who waits for a line sleeps on it
    HeadCount waiting;               // for a line for reads
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
  std::atomic<uint32_t> asked_{0};  // counts answers
  std::atomic<uint32_t> next_{0};   // whom to ask first
  // Of a pair: who serves. kFirst and kFirstAlone: the first, with and without its standby.
  // kChanges: the standby, as soon as it has become the master; there is no way back from here.
  enum class Turn : uint8_t { kFirst, kFirstAlone, kChanges, kSecond };
  std::atomic<Turn> turn_{Turn::kFirst};
  std::atomic<bool> is_short_{false};
  // Of whoever holds asking_: since when the first, or the standby, has not answered, and when that
  // was seen last.
  struct Silence {
    uint64_t since_ns = 0, seen_ns = 0;
    // For how long, once it is silent now.
    uint64_t extend(uint64_t now_ns);
    void end() { since_ns = 0; }
  } first_silence_, standby_silence_;
  uint16_t heard_[kSlotCount];  // of whoever holds asking_
};

}  // namespace outcore::redis
