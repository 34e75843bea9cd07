// BudgetControl: how much of the budget is for pages: as much as the program says, less what is
// lent to stores.
//
// Any thread but the fault path's.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/os/wait.h"
#include "core/paging/keeper.h"
#include "core/paging/pager.h"
#include "outcore/result.h"

namespace outcore::paging {

class BudgetControl {
 public:
  static constexpr uint64_t kKeptShare = 4;      // of the budget is never lent
  static constexpr uint64_t kApproachShare = 8;  // of a fill's wait: the most that approach() takes
  static constexpr uint64_t kLendPiece = 256 << 10, kLendNs = 5'000'000'000;

  BudgetControl(Pager& pager, Keeper& keeper) : pager_(pager), keeper_(keeper) {}

  // Evicts what is too much; while nothing leaves it waits as long as the options say. Errors:
  // EINVAL (too little, or more than there are frames for), EBUSY (what is pinned, lent or cannot
  // be written back needs more); then it stays as it was.
  Status resize(uint64_t bytes);
  // The same for who tries again, and must not have fills starve meanwhile: within ns_max from its
  // start, or an eighth of the options' wait if that is less, and no longer once full stores keep
  // everything. EBUSY: not all of it; what has left by then stays away, but for a few pages with
  // which fills go on.
  Status approach(uint64_t bytes, uint64_t ns_max);
  // What resize() would refuse to go below just now: what the pager needs, is pinned and is lent.
  // For pins never more than there is.
  uint64_t least_bytes() const;
  // What the program said.
  uint64_t total_bytes() const { return pager_.budget.limit() + lent_bytes_.load(); }

  // Memory of the budget for stores that have no other space (lending.h), and for what the page
  // cache holds of what is written by calls. It is acquired as a fill acquires its page's, piece by
  // piece, so that fills go on beside it and the budget holds at every moment; only then it is no
  // pages' any more. 0; -ENOSPC.
  int lend(uint64_t bytes);
  void return_lent(uint64_t bytes);  // REQUIRES: lent
  uint64_t lendable_bytes() const;
  uint64_t lent_bytes() const { return lent_bytes_.load(); }
  // What could ever be lent, however the budget changes.
  uint64_t bytes_max() const { return uint64_t{pager_.frames.count()} * base::kSystemPage; }

 private:
  struct Patience {
    uint64_t idle_ns_max = 0;         // while nothing leaves
    uint64_t ns_max = UINT64_MAX;     // from the start
    bool keeps_what_is_done = false;  // at the end; and it is no end to wait for full stores
  };
  Status change(uint64_t asked_bytes, const Patience& patience);
  Status limit_pages(uint64_t bytes, const Patience& patience);
  bool evict_beyond(uint64_t bytes, uint64_t until_ns);
  void forget_capacities();

  Pager& pager_;
  Keeper& keeper_;
  std::atomic<uint64_t> lent_bytes_{0};
  os::Lock resize_lock_;
};

}  // namespace outcore::paging
