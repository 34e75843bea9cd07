// Keeper: runs turns, which keep a shard's pages within the budget. Its own threads do so between
// the watermarks; a filler that finds no free frame has a turn run at once.
//
// The fault path; any thread. There is one Keeper for all shards: what a turn needs lies in the
// shard.
#pragma once

#include <cstdint>

#include "core/paging/pager.h"

namespace outcore::paging {

class Eviction;

class Keeper {
 public:
  static constexpr uint32_t kHelpVictims = 64;  // most victims of a turn that a filler runs
  static constexpr uint32_t kProbesMax = 64;    // most probes of a turn

  explicit Keeper(Pager& pager) : pager_(pager) {}

  // Runs one turn of the shard: drains its inbox, and evicts up to `victims` frames. Returns how
  // many bytes were freed. REQUIRES: shard.turn is held.
  uint64_t run_turn(Shard& shard, uint32_t victims, Caller caller);
  // Runs a turn of some shard whose turn is free. True if it freed something.
  bool help(Caller caller, uint32_t first_choice, uint32_t victims_max = kHelpVictims);
  // Wakes the keepers' threads.
  void call_keepers();
  // If the high watermark is passed, frees about as many bytes as were above the low one when it
  // began. False: it should free some, and could not.
  bool keep(Shard& shard);
  // What the thread of a shard's keeper does until Pager::is_stopping: it sleeps until the high
  // watermark is passed. While nothing can be freed (all pinned, or the store refuses writes) it
  // tries again, less and less often.
  void run(Shard& shard);

 private:
  uint64_t run_turn(Shard& shard, Eviction& eviction, uint32_t victims);
  // Reports touches to the policy, and probes pages; evicts nothing.
  void probe(Shard& shard);

  Pager& pager_;
};

}  // namespace outcore::paging
