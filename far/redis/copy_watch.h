// CopyWatch: whether what a server contains has as many copies as were asked for, and what happens
// to writes if it has not.
//
// A server has no copies if its replica took its place, or if its replica died. It is waited for,
// because another replica may come. Then writes go on without copies, which is reported once, until
// a replica has everything again.
//
// In a cluster that is safe only if no other server is left that could take this server's place,
// because that one would lack what was written without it. So a lack of acknowledgements alone is
// never enough: another server has to say that the cluster knows no living replica of this one. A
// master that is cut off from its replica waits until it is replaced.
//
// Any thread; the fault path.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "far/redis/server_table.h"

namespace outcore::redis {

class CopyWatch {
 public:
  explicit CopyWatch(ServerTable& table) : table_(table) {}

  // See Servers for these. Not of a pair.
  uint32_t acknowledging(uint32_t server, uint32_t wanted) const;
  void note_shortage(uint32_t server, uint32_t acknowledged);
  void note_acknowledged(uint32_t server, bool was_returning);
  bool is_returning(uint32_t server) const {
    return table_.at(server).copies.load() == Copies::kReturning;
  }
  bool may_probe(uint32_t server);
  void note_found(uint32_t server);
  bool is_unreplicated() const;
  // Whether there was a shortage since this was last asked.
  bool end_shortage() { return is_short_.exchange(false); }
  // True once in a while.
  static bool is_time_to_probe(Server& server, uint64_t now_ns);
  // Decides which servers go on without copies. `asked` has just said who has which slots: `heard`.
  // One thread at a time.
  void judge(uint32_t asked, std::span<const uint16_t> heard);

 private:
  ServerTable& table_;
  std::atomic<bool> is_short_{false};
};

}  // namespace outcore::redis
