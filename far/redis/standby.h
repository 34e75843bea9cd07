// Standby: of two single servers, the second is a replica of the first and takes over when the
// first is gone.
//
// Only the client decides that, because single servers do not vote. It is safe because a store has
// one writer, and every write carries a count: a client that goes over to the standby never asks
// the first server again, and the counts show if the standby knows less than what was acknowledged.
// Then it does not take over, and is as good as dead: it was started without what it had, or its
// address is another server's by now.
//
// Any thread; the fault path.
#pragma once

#include <atomic>
#include <cstdint>

#include "far/redis/copy_check.h"
#include "far/redis/copy_watch.h"
#include "far/redis/lines.h"
#include "far/redis/server_table.h"
#include "far/redis/slot_reader.h"

namespace outcore::redis {

class Standby {
 public:
  Standby(ServerTable& table, Lines& lines, CopyWatch& copies, SlotReader& slot_reader)
      : table_(table), lines_(lines), copies_(copies), slot_reader_(slot_reader) {}

  // Asks the server that serves, and finds out who that is. 0 or -errno. One thread at a time.
  int ask(uint64_t deadline_ns);
  // From now on, whoever takes over is checked; nullptr: no longer. REQUIRES: then nobody asks.
  void set_check(CopyCheck* check) { check_.store(check); }
  // As Servers::acknowledging().
  uint32_t acknowledging(uint32_t server, uint32_t wanted) const;
  // As Servers::is_retired().
  bool is_retired(uint32_t server) const { return server == 0 && turn_.load() >= Turn::kChanges; }
  // One server serves without the other.
  bool is_alone() const { return turn_.load() >= Turn::kFirstAlone; }

 private:
  // Who serves. kFirst and kFirstAlone: the first, with and without its standby. kChanges: the
  // standby, as soon as it has become the master; this cannot be undone.
  enum class Turn : uint8_t { kFirst, kFirstAlone, kChanges, kSecond };
  // Since when a server has not answered, and when that was last seen.
  struct Silence {
    uint64_t since_ns = 0, seen_ns = 0;
    // The server is silent now. Returns for how long it has been.
    uint64_t extend(uint64_t now_ns);
    void end() { since_ns = 0; }
  };

  int look_at_standby(bool is_first_gone, uint64_t deadline_ns);
  int make_standby_serve(uint64_t deadline_ns);

  ServerTable& table_;
  Lines& lines_;
  CopyWatch& copies_;
  SlotReader& slot_reader_;
  std::atomic<Turn> turn_{Turn::kFirst};
  std::atomic<CopyCheck*> check_{nullptr};
  Silence first_silence_, standby_silence_;  // used by ask()
};

}  // namespace outcore::redis
