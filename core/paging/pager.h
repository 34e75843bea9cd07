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
#include "core/paging/cleaned_times.h"
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
  bool fetches_clusters = true;  // a miss brings in a cluster, if the tuner says so; false: a page
  uint64_t wait_ns_max = 30'000'000'000;
  // Buffers for transfers of a shared buffer's pages, outside of the budget; none: no page cache is
  // in a shared buffer.
  budget::BouncePool::Shape buffer_bounce;
  budget::BudgetCells* budget_cells =
      nullptr;  // where the budget's use is published; nullptr: nowhere
  // Where the policy that `auto` has chosen is published; nullptr: nowhere.
  published::ChangingText<64>* policy_now = nullptr;
  bool has_threads = true;  // false: a simulation runs turns and prefetches itself
};

// Who runs: decides what may block, and how stores are called.
enum class Caller : uint8_t {
  kFault,   // in a fault handler: prefetch threads call the stores that are not fault safe
  kThread,  // in a thread of ours, or in a call of the program
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
  // The size of the shard's pages. Until that is known it is the largest page size in use, so that
  // a batch does not take too many. REQUIRES: the shard's turn.
  uint64_t usual_page_bytes(const Shard& shard) const {
    OC_ASSERT(shard.turn.is_held());
    return shard.capacity_page_bytes != 0 ? shard.capacity_page_bytes : page_bytes_max.load();
  }
  // Publishes which policy the shard's `auto` has chosen, if that has changed. REQUIRES: its turn.
  void tell_policy(Shard& shard) const;
  uint64_t least_budget(uint64_t page_bytes) const;
  // How much of the budget bounce buffers and the shards' write buffers use.
  uint64_t buffer_bytes() const;
  // Keepers evict from `high` on, down to `low`. They leave room for at least one page of the
  // largest size, because a filler in a fault handler may not be able to make room itself (if a
  // store is not fault safe).
  struct Watermarks {
    uint64_t low = 0, high = 0;  // bytes of the budget
  };
  Watermarks watermarks() const;
  // How much of the budget pins must leave, so that fills can still make progress.
  uint64_t pin_reserve_bytes() const { return buffer_bytes() + 8 * page_bytes_max.load(); }
  // Calls f for every page of [first, end) that has a frame, and perhaps for pages that have none:
  // it walks the pages or the frames, whichever are fewer.
  void for_each_framed(const PageCache& cache, uint64_t first, uint64_t end,
                       const std::function<void(uint64_t page)>& f);

  // All bounce and write buffers; constant while the pager lives.
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
  // The policy learns from pages that are rescued before they are freed.
  bool policy_wants_rescue = false;
  WriteStall stall;
  WriteCost write_cost;
  CleanedTimes cleaned;
  prefetch::ReaderCount readers;  // threads that missed pages recently
  std::atomic<uint64_t> rescues{0};
  prefetch::FetchTuner tuner;  // how much a miss brings in
  std::atomic<uint64_t> pinned_bytes{0};
  std::atomic<uint64_t> pinning_bytes{0};  // pages of pins under way that are not in memory yet
  std::atomic<uint64_t> page_bytes_max{4096};
  std::atomic<bool> is_crowded{false};  // some frames have little room left for pages
  // Odd while BudgetControl::approach() tries a smaller limit: a fill must not fail only because no
  // page can leave during that.
  std::atomic<uint32_t> approaches{0};
  std::atomic<bool> is_stopping{false};  // our threads are to end
};

}  // namespace outcore::paging
