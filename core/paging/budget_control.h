// BudgetControl: sets how much of the budget is for pages: the budget that the program has set,
// less what is lent to stores and to the page cache.
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
  static constexpr uint64_t kKeptShare = 4;      // a quarter of the budget is never lent
  static constexpr uint64_t kApproachShare = 8;  // approach() takes at most an eighth of wait_max
  static constexpr uint64_t kLendPiece = 256 << 10, kLendNs = 5'000'000'000;

  BudgetControl(Pager& pager, Keeper& keeper) : pager_(pager), keeper_(keeper) {}

  // Sets the budget, and evicts what exceeds it; while no page can leave it waits as long as the
  // options say. Errors, after which the budget is as before: EINVAL (too small, or more than there
  // are frames for), EBUSY (pinned, lent and unwritable pages need more).
  Status resize(uint64_t bytes);
  // As resize(), for a caller that will try again and must not starve fills meanwhile. It ends
  // after ns_max, or an eighth of the options' wait if that is less, and earlier if all pages wait
  // for full stores. EBUSY: the budget is only partly as small as asked: what was evicted stays
  // away, except for a few pages that fills need.
  Status approach(uint64_t bytes, uint64_t ns_max);
  // The smallest budget that resize() would accept now: what the pager needs, pinned pages, and
  // lent memory. Pins count for no more than the present budget.
  uint64_t least_bytes() const;
  // The budget that the program has set.
  uint64_t total_bytes() const { return pager_.budget.limit() + lent_bytes_.load(); }

  // Lends memory of the budget to stores that have no other space (lending.h), or to the page cache
  // for bytes that the program writes by calls. It is acquired piece by piece, as a fill acquires a
  // page's, so that fills go on meanwhile and the budget holds at every moment; then the limit for
  // pages is lowered. 0; -ENOSPC.
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
    bool keeps_what_is_done = false;  // after a failure; and it does not wait for full stores
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
