#include "core/paging/budget_control.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait_limit.h"

namespace outcore::paging {

using base::format_bytes;

namespace {

// While it exists, the number is odd.
class Approaching {
 public:
  explicit Approaching(std::atomic<uint32_t>& number) : number_(number) {
    const uint32_t before = number_.fetch_add(1);
    OC_CHECK(before % 2 == 0);
  }
  ~Approaching() { number_.fetch_add(1); }
  Approaching(const Approaching&) = delete;
  Approaching& operator=(const Approaching&) = delete;

 private:
  std::atomic<uint32_t>& number_;
};

}  // namespace

uint64_t BudgetControl::least_bytes() const {
  const uint64_t lent = lent_bytes_.load();
  const uint64_t needed = pager_.least_budget(pager_.page_bytes_max.load()) + lent;
  // Pins under way may be refused, and count pages twice that are pinned already.
  const uint64_t pinned = std::min(
      pager_.pinned_bytes.load() + pager_.pinning_bytes.load() + pager_.pin_reserve_bytes() + lent,
      total_bytes());
  OC_CHECK(needed != 0);
  return base::round_up(std::max(needed, pinned), base::kSystemPage);
}

Status BudgetControl::resize(uint64_t bytes) {
  return change(bytes, {.idle_ns_max = pager_.options.wait_ns_max});
}

Status BudgetControl::approach(uint64_t bytes, uint64_t ns_max) {
  const uint64_t most = std::min(ns_max, pager_.options.wait_ns_max / kApproachShare);
  return change(bytes, {.idle_ns_max = most, .ns_max = most, .keeps_what_is_done = true});
}

Status BudgetControl::change(uint64_t asked_bytes, const Patience& patience) {
  const uint64_t bytes = base::round_down(asked_bytes, base::kSystemPage);
  const uint64_t least = pager_.least_budget(pager_.page_bytes_max.load());
  if (bytes < least)
    return Error{EINVAL, "resize the budget to " + format_bytes(asked_bytes) +
                             ": the least that would do is " + format_bytes(least)};
  if (bytes / base::kSystemPage > pager_.frames.count())
    return Error{EINVAL, "resize the budget to " + format_bytes(bytes) +
                             ": it can grow to at most " +
                             format_bytes(uint64_t{pager_.frames.count()} * base::kSystemPage)};
  const os::SignalBlock block;
  const os::Locked resizing(resize_lock_);  // or one call could put back what another has changed
  const uint64_t lent = lent_bytes_.load();
  if (bytes < least + lent)
    return Error{EBUSY, "resize the budget to " + format_bytes(bytes) + ": " + format_bytes(lent) +
                            " of it hold what the servers have no space for, or what is written by "
                            "calls; the least that would do is " +
                            format_bytes(least + lent)};
  return limit_pages(bytes - lent, patience);
}

// One turn of each shard, until it is too late. True: something has left.
bool BudgetControl::evict_beyond(uint64_t bytes, uint64_t until_ns) {
  bool is_moving = false;
  for (const auto& shard : pager_.shards) {
    if (os::now_ns() > until_ns) break;
    const os::Locked turn(shard->turn);
    const uint64_t over = pager_.budget.used() - std::min(pager_.budget.used(), bytes);
    const uint64_t share = over / pager_.usual_page_bytes(*shard) / pager_.shards.size() + 1;
    const auto victims =
        static_cast<uint32_t>(std::min<uint64_t>(share, uint64_t{Shard::kVictimsMax}));
    is_moving = keeper_.run_turn(*shard, victims, Caller::kThread) > 0 || is_moving;
  }
  return is_moving;
}

// Of the budget, what pages and buffers may use. REQUIRES: resize_lock_, and signals are blocked.
Status BudgetControl::limit_pages(uint64_t bytes, const Patience& patience) {
  OC_CHECK(resize_lock_.is_held());
  OC_CHECK(bytes % base::kSystemPage == 0);
  const uint64_t before = pager_.budget.limit();
  std::optional<Approaching> approaching;
  if (patience.keeps_what_is_done) approaching.emplace(pager_.approaches);
  pager_.budget.set_limit(bytes);
  // Known at once: fills must not starve meanwhile.
  const uint64_t pinned = pager_.pinned_bytes.load() + pager_.pinning_bytes.load();
  if (bytes < before && pinned + pager_.pin_reserve_bytes() > bytes) {
    pager_.budget.set_limit(before);
    return Error{EBUSY, "resize the budget to " + format_bytes(bytes) + ": " +
                            format_bytes(pinned) + " are pinned; the least that would do is " +
                            format_bytes(pinned + pager_.pin_reserve_bytes()) +
                            "; the budget stays at " + format_bytes(before)};
  }
  const uint64_t start_ns = os::now_ns();
  const uint64_t until_ns = start_ns + std::min(patience.ns_max, UINT64_MAX - start_ns);
  os::WaitLimit idle(patience.idle_ns_max);  // since something left last
  while (pager_.budget.used() > bytes) {
    const bool is_moving = evict_beyond(bytes, until_ns);
    const uint64_t used = pager_.budget.used(), now_ns = os::now_ns();
    if (used <= bytes) break;
    if (is_moving) idle = os::WaitLimit(patience.idle_ns_max);
    const bool is_vain = !is_moving && patience.keeps_what_is_done && pager_.stall.error() != 0;
    if (is_vain || now_ns > until_ns || (!is_moving && idle.is_over())) {
      // Nothing was taken above the limit since it was set: what is used has only become less. As
      // beside pins, fills need some pages to go on with, should the rest never leave.
      const uint64_t most = base::round_up(used, base::kSystemPage) + pager_.pin_reserve_bytes() -
                            pager_.buffer_bytes();
      const uint64_t left = patience.keeps_what_is_done ? std::min(before, most) : before;
      OC_CHECK(left >= std::min(before, bytes));
      pager_.budget.set_limit(left);
      pager_.budget.release(0);                             // there is room for who waits
      if (patience.keeps_what_is_done) pager_.stall.end();  // and what they take can leave again
      forget_capacities();
      return Error{EBUSY, "resize the budget to " + format_bytes(bytes) + ": " +
                              format_bytes(used - bytes) +
                              " more are pinned or cannot be written back; the budget stays at " +
                              format_bytes(left)};
    }
    if (!is_moving) pager_.budget.wait_for_change(pager_.budget.changes(), 2'000'000);
  }
  forget_capacities();
  return {};
}

uint64_t BudgetControl::lendable_bytes() const {
  const uint64_t limit = pager_.budget.limit();
  const uint64_t kept = std::max(2 * pager_.least_budget(pager_.page_bytes_max.load()),
                                 (limit + lent_bytes_.load()) / kKeptShare);
  OC_ASSERT(kept != 0);
  return limit > kept ? base::round_down(limit - kept, base::kSystemPage) : 0;
}

int BudgetControl::lend(uint64_t bytes) {
  OC_CHECK(bytes % base::kSystemPage == 0);
  const os::SignalBlock block;
  const os::Locked resizing(resize_lock_);
  if (bytes > lendable_bytes()) return -ENOSPC;
  uint64_t taken = 0;
  const uint64_t start_ns = os::now_ns();
  while (taken < bytes) {
    const uint64_t piece = std::min(bytes - taken, kLendPiece);
    const uint32_t changes = pager_.budget.changes();
    if (pager_.budget.try_acquire(piece)) {
      taken += piece;
      continue;
    }
    uint64_t freed = 0;
    for (const auto& shard : pager_.shards) {
      if (freed >= piece) break;
      const os::Locked turn(shard->turn);
      const auto victims = static_cast<uint32_t>(
          std::min<uint64_t>(piece / pager_.usual_page_bytes(*shard) + 1, Shard::kVictimsMax));
      freed += keeper_.run_turn(*shard, victims, Caller::kThread);
    }
    if (freed != 0) continue;
    if (pager_.stall.error() != 0 ||
        os::now_ns() - start_ns > std::min(kLendNs, pager_.options.wait_ns_max))
      break;
    pager_.budget.wait_for_change(changes, 2'000'000);
  }
  OC_CHECK(taken <= bytes);
  const uint64_t limit = pager_.budget.limit();
  if (taken == bytes) {
    OC_CHECK(bytes < limit);
    pager_.budget.set_limit(limit - bytes);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (pager_.pinned_bytes.load() + pager_.pinning_bytes.load() + pager_.pin_reserve_bytes() >
        limit - bytes) {
      pager_.budget.set_limit(limit);
      taken = 0;
      pager_.budget.release(bytes);
      return -ENOSPC;
    }
    pager_.budget.show_lent(lent_bytes_.fetch_add(bytes) + bytes);
  }
  if (taken != 0) pager_.budget.release(taken);
  if (taken != bytes) return -ENOSPC;
  forget_capacities();
  return 0;
}

void BudgetControl::return_lent(uint64_t bytes) {
  const os::SignalBlock block;
  const os::Locked resizing(resize_lock_);
  const uint64_t before = lent_bytes_.fetch_sub(bytes);
  pager_.budget.show_lent(before - bytes);
  OC_CHECK(before >= bytes);
  pager_.budget.set_limit(pager_.budget.limit() + bytes);
  pager_.budget.release(0);  // there is room for who waits
  forget_capacities();
}

// Policies are told at their next turn how many pages fit.
void BudgetControl::forget_capacities() {
  for (const auto& shard : pager_.shards) {
    const os::Locked turn(shard->turn);
    shard->capacity_page_bytes = 0;
  }
}

}  // namespace outcore::paging
