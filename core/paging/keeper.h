// Keeper: runs turns, which keep a shard's pages within the budget. Its own threads do so between
// the watermarks; a filler that finds no free frame has a turn run at once.
//
// The fault path. One for all shards: what a turn needs lies in the shard.
#pragma once

#include <cstdint>

#include "core/paging/pager.h"

namespace outcore::paging {

class Eviction;

class Keeper {
 public:
  static constexpr uint32_t kHelpVictims = 64;  // of a turn that a filler runs
  static constexpr uint32_t kProbesMax = 64;    // of a turn

  explicit Keeper(Pager& pager) : pager_(pager) {}

  // One turn of the shard: drains its inbox, evicts up to `victims` frames. Bytes freed. REQUIRES:
  // shard.turn is held.
  uint64_t run_turn(Shard& shard, uint32_t victims, Caller caller);
  // Runs a turn of some shard whose turn is free. True if it freed something.
  bool help(Caller caller, uint32_t first_choice, uint32_t victims_max = kHelpVictims);
  // Wakes the keepers' threads.
  void call_keepers();
  // If above the high watermark, evicts what is too much above the low one at that moment, but for
  // a little; false if nothing could be freed though it should.
  bool keep(Shard& shard);
  // The thread of a shard's keeper, until Pager::is_stopping. Called when the high watermark is
  // passed; where nothing can be freed (all pinned, or the store refuses writes) it tries again,
  // less and less often.
  void run(Shard& shard);

 private:
  uint64_t run_turn(Shard& shard, Eviction& eviction, uint32_t victims);
  // Tells the policy what was touched, and probes pages; evicts nothing.
  void probe(Shard& shard);

  Pager& pager_;
};

}  // namespace outcore::paging
