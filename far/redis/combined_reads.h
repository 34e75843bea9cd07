// CombinedReads: small reads of several threads, combined into one batch. See combining_queue.h.
//
// Any thread; the fault path.
#pragma once

#include <memory>
#include <span>

#include "far/redis/combining_queue.h"
#include "far/redis/group_exchange.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

class CombinedReads {
 public:
  CombinedReads(StoreState& state, GroupExchange& exchange)
      : state_(state), exchange_(exchange), queues_(new CombiningQueue[Servers::kServersMax]) {}

  // Tries once to read a small batch from one server, as the leader or through another thread that
  // leads. The caller must ask again, in the general way, for the requests that are not done then.
  void read(std::span<ChunkRequest> batch, uint64_t deadline_ns);
  // Passes the connection, which is for reads, to the thread that has waited longest, which becomes
  // the leader; if nobody waits, returns it to Servers.
  void release(Line* line, uint32_t server);

 private:
  void lead(Line* line, std::span<ChunkRequest> batch, uint64_t deadline_ns);
  void ask_together(Line* line, uint32_t server, std::span<ChunkRequest> all);

  StoreState& state_;
  GroupExchange& exchange_;
  const std::unique_ptr<CombiningQueue[]> queues_;  // by server
};

}  // namespace outcore::redis
