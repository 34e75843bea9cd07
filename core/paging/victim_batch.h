// VictimBatch: the victims of one turn, and how one that does not leave becomes resident again.
//
// The victims themselves lie in the shard, because a turn may run on a small signal stack. Used by
// the thread that holds the shard's turn.
#pragma once

#include <cstdint>

#include "core/base/assert.h"
#include "core/paging/pager.h"

namespace outcore::paging {

class VictimBatch {
 public:
  // REQUIRES: shard.turn is held for the life of this.
  VictimBatch(Pager& pager, Shard& shard) : pager_(pager), shard_(shard) {
    OC_CHECK(shard.turn.is_held());
  }

  // Reports to the policy what happened since the last turn.
  void drain_inbox();
  // Reports to the tuner how many pages are leaving, and how many of them were written back first.
  void note_leaving() const;
  // Unmapping or Dropping → Resident; the policy has the frame again.
  void put_back(Victim& victim);
  // A victim that could not be evicted becomes resident again, and the policy has its frame again:
  // Leaving → Resident, unless a touch has rescued it already. `minus` and `plus`: flags that the
  // page's word loses and gets in any case.
  void put_back_leaving(Victim& victim, uint64_t minus, uint64_t plus);
  // Gives a resident frame back to the policy.
  void return_to_policy(uint32_t frame, bool was_chosen);

 private:
  void return_to_policy(const Victim& victim);
  void show_again(const Victim& victim, bool is_dirty);

  Pager& pager_;
  Shard& shard_;
};

}  // namespace outcore::paging
