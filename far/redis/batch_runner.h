// BatchRunner: carries out a batch of requests: divides it among the servers, and asks again until
// all is done or the timeout of the store is over.
//
// Any thread; the fault path for reads.
#pragma once

#include <span>

#include "far/redis/combined_reads.h"
#include "far/redis/group_exchange.h"
#include "far/redis/store_state.h"

namespace outcore::redis {

class BatchRunner {
 public:
  BatchRunner(StoreState& state, GroupExchange& exchange, CombinedReads& combined_reads)
      : state_(state), exchange_(exchange), combined_reads_(combined_reads) {}

  // See Chunks::run().
  void run(std::span<ChunkRequest> batch);

 private:
  static constexpr size_t kGroupsMax = 32;

  void assign(std::span<ChunkRequest> batch);
  bool is_given_up(const ChunkRequest& r, uint64_t start_ns, bool has_refreshed) const;
  bool round(std::span<ChunkRequest> batch, uint64_t deadline_ns);
  static size_t find_groups(std::span<const ChunkRequest> batch, Group* groups);

  StoreState& state_;
  GroupExchange& exchange_;
  CombinedReads& combined_reads_;
};

}  // namespace outcore::redis
