// FrameSupply: frames within the budget. A thread that finds none has pages evicted, or waits.
//
// The fault path; any thread that holds no turn.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/paging/eviction_choice.h"
#include "core/paging/keeper.h"
#include "core/paging/pager.h"

namespace outcore::paging {

class FrameSupply {
 public:
  FrameSupply(Pager& pager, Keeper& keeper) : pager_(pager), keeper_(keeper) {}

  // A frame within the budget. If there is none, this thread evicts a batch itself rather than wait
  // for the keeper; what is left is a wait with a bound. With a bound of 0 (hints) it does neither.
  // 0; -ENOMEM; -ENOSPC or -EDQUOT: written pages fill the budget, and cannot be stored.
  int allocate_frame(PageCache& cache, Caller caller, uint64_t wait_ns, uint32_t* frame);
  // A frame that was allocated for a page of the cache, and is not in use.
  void free_frame(PageCache& cache, uint32_t frame);
  // Whether a call that failed with `result` may do better now, after something was evicted. With
  // mprotect a page among others takes mappings of its own. Frames say when there is little room
  // for more, but the program may have used up the rest: evicting gives some back.
  bool can_repeat(int result, Caller caller, uint32_t* tries);

 private:
  bool may_evict_itself(const PageCache& cache, Caller caller);
  bool evict_itself(Caller caller, uint32_t first_choice);
  bool is_above_high_watermark(uint64_t used_bytes) const;
  Pager& pager_;
  Keeper& keeper_;
  std::atomic<uint64_t> misses_seen_{0};  // when a thread might have evicted pages itself
  EvictionChoice choice_;
};

}  // namespace outcore::paging
