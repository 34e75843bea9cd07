// Pager: the state that the pieces of the pager share: its options, the memory it may use, its
// shards and its caches. It decides nothing.
//
// Any thread; the fault path reads it. The pieces beside it (FaultPath, Filler, Keeper, Flusher, …)
// hold references to it and to pieces below them. See ARCHITECTURE.md, "One fault".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/assert.h"
#include "core/budget/bounce_pool.h"
#include "core/budget/budget.h"
#include "core/budget/frame_table.h"
#include "core/os/address_space.h"
#include "core/os/wait.h"
#include "core/paging/page_cache.h"
#include "core/paging/shard.h"
#include "core/paging/write_cost.h"
#include "core/paging/write_stall.h"
#include "core/prefetch/fetch_tuner.h"
#include "core/prefetch/reader_count.h"
#include "outcore/result.h"

namespace outcore::paging {

struct PagerOptions {
  uint64_t budget_bytes = 0;
  uint64_t frames_max = 0;  // frames that any later budget may need
  std::string policy = "auto";
  unsigned keepers = 1;
  unsigned prefetch_threads = 1;
  unsigned high_watermark = 98;  // percent
  unsigned low_watermark = 97;
  uint64_t readahead_bytes = 2 << 20;
  bool fetches_clusters = true;  // around a miss, as the tuner chooses; false: the page alone
  uint64_t wait_ns_max = 30'000'000'000;
  // Of transfers of a buffer's pages, beside the budget; none: no page cache is a buffer's.
  budget::BouncePool::Shape buffer_bounce;
  budget::BudgetCells* budget_cells =
      nullptr;  // where the budget is counted; nullptr: nobody sees it
  // Where the policy is told that `auto` has taken; nullptr: nobody sees it.
  published::ChangingText<64>* policy_now = nullptr;
  bool has_threads = true;  // false: a simulation runs turns and prefetches itself
};

// Who runs: decides what may block, and how stores are called.
enum class Caller : uint8_t {
  kFault,   // inside a fault handler: stores that are not fault safe are left to the prefetch
            // threads
  kThread,  // a thread of ours, or a call of the program
};

struct Pager {
  static constexpr uint32_t kCachesMax = 1 << 20;

  explicit Pager(const PagerOptions& asked)
      : options(asked), budget(asked.budget_bytes, asked.budget_cells) {}
  Pager(const Pager&) = delete;
  Pager& operator=(const Pager&) = delete;
  ~Pager();  // REQUIRES: no cache is left

  // Checks that the budget is large enough for the keepers and for pages of this size. EINVAL: too
  // small; the message names the smallest that is sufficient.
  static Status check_budget(const PagerOptions& options, uint64_t page_bytes);
  // Makes tables, buffers and policies, within the budget. Called once, before anything else.
  // Errors: EINVAL (the policy; a budget that is too small: as check_budget()), ENOMEM.
  Status allocate();

  PageCache* cache_of(uint32_t id) const { return caches[id].load(std::memory_order_acquire); }
  Shard& shard_of(const PageCache& cache, uint64_t page) const;
  // Of the shard's pages; until it knows, the largest there are, or a batch would take too many.
  // REQUIRES: the shard's turn.
  uint64_t usual_page_bytes(const Shard& shard) const {
    OC_ASSERT(shard.turn.is_held());
    return shard.capacity_page_bytes != 0 ? shard.capacity_page_bytes : page_bytes_max.load();
  }
  // Lets others see which policy the shard's has taken, if that has changed. REQUIRES: its turn.
  void tell_policy(Shard& shard) const;
  uint64_t least_budget(uint64_t page_bytes) const;
  // Of the budget, what bounce buffers and the shards' write buffers use.
  uint64_t buffer_bytes() const;
  // From `high` on keepers evict, down to `low`. Pages may be large beside the share above the
  // watermark: the largest must find room, too. A filler inside a fault handler may not be able to
  // make it (a store that is not fault safe).
  struct Watermarks {
    uint64_t low = 0, high = 0;  // bytes of the budget
  };
  Watermarks watermarks() const;
  // What pins must leave of the budget, so that fills can go on beside them.
  uint64_t pin_reserve_bytes() const { return buffer_bytes() + 8 * page_bytes_max.load(); }
  // Calls f for every page of [first, end) that has a frame, and perhaps for others, whichever is
  // quicker.
  void for_each_framed(const PageCache& cache, uint64_t first, uint64_t end,
                       const std::function<void(uint64_t page)>& f);

  // All memory through which bytes travel; constant while the pager lives.
  std::span<std::byte> buffers() const;
  uint64_t metadata_bytes() const;
  bool is_valid() const;

  const PagerOptions options;
  budget::Budget budget;  // of pages and buffers, without what is lent
  budget::FrameTable frames;
  budget::BouncePool bounce;
  os::Table<std::atomic<PageCache*>> caches;
  std::atomic<uint32_t> caches_end{0};
  os::Lock caches_lock;  // of changes of `caches`, and of the lists of views
  std::vector<std::unique_ptr<Shard>> shards;
  // The policy lives on pages that come back before they are freed.
  bool policy_wants_rescue = false;
  WriteStall stall;
  WriteCost write_cost;
  prefetch::ReaderCount readers;  // threads that missed pages recently
  std::atomic<uint64_t> rescues{0};
  prefetch::FetchTuner tuner;  // how much a miss brings in
  std::atomic<uint64_t> pinned_bytes{0};
  std::atomic<uint64_t> pinning_bytes{0};  // of pins under way, as far as they are not in yet
  std::atomic<uint64_t> page_bytes_max{4096};
  std::atomic<bool> is_crowded{false};  // some frames have little room left for pages
  // Odd while the limit is lower than it may stay (BudgetControl::approach): that nothing can leave
  // then is no reason for a fill to fail.
  std::atomic<uint32_t> approaches{0};
  std::atomic<bool> is_stopping{false};  // our threads are to end
};

}  // namespace outcore::paging
