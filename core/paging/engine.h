// Engine: the pager of one runtime, put together. It owns the pieces and passes calls on to them;
// each piece's header says what its calls do.
//
// Fault path: fault(). Turns: keeper threads, and fillers that find no free frame. Calls: flush,
// pin, … from the program's threads, with signals blocked. See ARCHITECTURE.md, "One fault".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/function_ref.h"
#include "core/os/signal_delivery.h"
#include "core/paging/budget_control.h"
#include "core/paging/cluster_filler.h"
#include "core/paging/discarder.h"
#include "core/paging/failed_pages.h"
#include "core/paging/fault_path.h"
#include "core/paging/filler.h"
#include "core/paging/flusher.h"
#include "core/paging/frame_supply.h"
#include "core/paging/freezer.h"
#include "core/paging/fresh_pages.h"
#include "core/paging/keeper.h"
#include "core/paging/lending.h"
#include "core/paging/overwriter.h"
#include "core/paging/page_cache_list.h"
#include "core/paging/pager.h"
#include "core/paging/pins.h"
#include "core/paging/prefetch_queue.h"
#include "core/paging/prefetcher.h"
#include "core/paging/ranges.h"
#include "core/paging/readahead.h"
#include "core/paging/remapper.h"
#include "core/paging/replayer.h"
#include "core/paging/reshaper.h"
#include "core/paging/shared_filler.h"
#include "core/paging/shared_writer.h"
#include "core/paging/view_list.h"
#include "outcore/metrics.h"
#include "outcore/result.h"

namespace outcore::paging {

struct CutCalls;
struct CutReport;

class Engine {
 public:
  // Errors: EINVAL (the policy; a budget that is too small: the message names the smallest),
  // ENOMEM.
  static Result<std::unique_ptr<Engine>> start(const PagerOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();  // REQUIRES: no cache is left

  Pager& pager() { return pager_; }

  // -- caches and views (PageCacheList, ViewList, Freezer) --
  Status add_cache(PageCache* cache);
  Status check_page_bytes(const std::string& uri, uint64_t page_bytes) const {
    return caches_.check_page_bytes(uri, page_bytes);
  }
  void drop_frames(PageCache& cache) { caches_.drop_frames(cache); }
  void remove_cache(PageCache* cache);
  // See SharedWriter. REQUIRES: cache.writes.
  int store_adopted(PageCache& cache) { return writer_.store_adopted(cache); }
  Status add_view(PageCache& cache, region::View* view) { return views_.add(cache, view); }
  // From now on no fault finds the view. Waits for faults under way, but not for queued prefetches.
  void hide_view(region::View* view);
  void remove_view(region::View* view);
  Status replace_frames(PageCache& cache, std::unique_ptr<os::Frames> frames) {
    return freezer_.replace_frames(cache, std::move(frames));
  }
  Status lengthen(PageCache& cache, uint64_t store_bytes) {
    return freezer_.lengthen(cache, store_bytes);
  }
  Status halt(PageCache& cache) { return freezer_.halt(cache); }
  void resume(PageCache& cache) { freezer_.resume(cache); }

  // -- views change their shape while the program runs (Reshaper, Freezer). All of these REQUIRE
  // the runtime's mapping lock, or two of them could wait for each other --
  Status evict_and_block(PageCache& cache, uint64_t first, uint64_t end) {
    return reshaper_.evict_and_block(cache, first, end);
  }
  void unblock(PageCache& cache, uint64_t first, uint64_t end) {
    reshaper_.unblock(cache, first, end);
  }
  Status overwrite(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                   base::FunctionRef<void()> change) {
    return overwriter_.overwrite(cache, offset, size_bytes, change);
  }
  Status change_absent(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                       base::FunctionRef<void()> change) {
    return overwriter_.change_absent(cache, offset, size_bytes, change);
  }
  Status swap_view(PageCache& cache, region::View* old, std::span<region::View* const> parts,
                   const std::function<void()>& between) {
    return reshaper_.swap_view(cache, old, parts, between);
  }
  Status give_view(PageCache& cache, region::View** shown, region::View* twin,
                   base::FunctionRef<Status()> prepare, base::FunctionRef<Status()> place) {
    return reshaper_.give_view(cache, shown, twin, prepare, place);
  }
  Status extend_view(PageCache& cache, region::View* view, uint64_t size_bytes,
                     uint64_t store_bytes) {
    return freezer_.extend_view(cache, view, size_bytes, store_bytes);
  }
  Status hand_to_kernel(PageCache& cache, const std::function<Status()>& place) {
    if (cache.writes == nullptr) return freezer_.hand_to_kernel(cache, place);
    return freezer_.hand_to_kernel(cache, [&]() -> Status {
      const Status s = writer_.hand_back(cache);
      return s.ok() ? place() : s;
    });
  }

  // -- the fault path (FaultPath) --
  os::FaultOutcome fault(region::View& view, std::byte* address, bool is_write, uint64_t site = 0,
                         uint64_t heard_ns = CleanedTimes::kNever) {
    return fault_path_.fault(view, address, is_write, site, heard_ns);
  }
  void fill_many(region::View& view, std::span<const os::Touch> touches) {
    fault_path_.fill_many(view, touches);
  }
  // For a call of the program, which waits for the page.
  int bring_in(region::View& view, uint64_t page) {
    CallWait wait(view.cache->counters);
    return fault_path_.bring_in(view, page, nullptr, false, &wait);
  }

  // -- calls of the program; pages are the cache's. All with signals blocked --
  // Flusher, Cut.
  Status flush(PageCache& cache, uint64_t first, uint64_t end,
               OnTimeout on_timeout = OnTimeout::kStop) {
    if (cache.writes != nullptr) return writer_.flush(cache, first, end);
    return flusher_.flush(cache, first, end, on_timeout);
  }
  Status flush_aside(PageCache& cache, uint64_t first, uint64_t end) {
    if (cache.writes != nullptr) return writer_.flush(cache, first, end);
    return flusher_.flush_aside(cache, first, end);
  }
  // Makes one consistent cut over the caches, while the program runs: see cut.h. One at a time;
  // others wait. REQUIRES: the caches live until it returns.
  Result<CutReport> cut(std::span<PageCache* const> caches, const CutCalls& calls);
  // Pins.
  Status pin(region::View& view, const std::byte* from, uint64_t size_bytes) {
    return pins_.pin(view, from, size_bytes);
  }
  Status unpin(region::View& view, const std::byte* from, uint64_t size_bytes) {
    return pins_.unpin(view, from, size_bytes);
  }
  int pin_page(region::View& view, uint64_t page, std::byte* address, bool is_write) {
    return pins_.pin_page(view, page, address, is_write);
  }
  void unpin_page(PageCache& cache, uint64_t page) { pins_.unpin_page(cache, page); }
  // Ranges, Discarder, failed pages.
  Status evict(PageCache& cache, uint64_t first, uint64_t end) {
    return ranges_.evict(cache, first, end);
  }
  void make_cold(PageCache& cache, uint64_t first, uint64_t end) {
    ranges_.make_cold(cache, first, end);
  }
  Status discard(PageCache& cache, uint64_t offset, uint64_t size_bytes) {
    return discarder_.discard(cache, offset, size_bytes);
  }
  bool retry_failed(PageCache& cache, uint64_t first, uint64_t end) {
    return paging::retry_failed(cache, first, end);
  }
  Status retry_zeroed(PageCache& cache, uint64_t first, uint64_t end) {
    return ranges_.retry_zeroed(cache, first, end);
  }
  Status end_zeroed(PageCache& cache) { return ranges_.end_zeroed(cache); }
  // FreshPages, Prefetcher.
  void prepare(region::View& view, uint64_t first, uint64_t end) {
    fresh_pages_.prepare(view, first, end);
  }
  void prefetch(region::View& view, uint64_t first, int64_t stride, uint64_t count) {
    prefetcher_.prefetch(view, first, stride, count, false);
  }
  uint64_t bring_in_for_call(region::View& view, uint64_t first, uint64_t end) {
    return prefetcher_.bring_in_for_call(view, first, end);
  }
  // Replayer.
  Status replay(const region::View& view, uint64_t from, uint64_t to,
                std::shared_ptr<const std::string> touches) {
    return replayer_.start(view, from, to, std::move(touches));
  }
  bool forget_replays(const PageCache& cache) { return replayer_.forget(cache); }
  Replayer::Totals replayed() const { return replayer_.totals(); }
  // BudgetControl.
  Status resize_budget(uint64_t bytes) { return budget_control_.resize(bytes); }
  // Memory of the budget for stores and the page cache: BudgetControl.
  int lend(uint64_t bytes) { return budget_control_.lend(bytes); }
  void return_lent(uint64_t bytes) { budget_control_.return_lent(bytes); }
  Status approach_budget(uint64_t bytes, uint64_t ns_max) {
    return budget_control_.approach(bytes, ns_max);
  }
  uint64_t budget_bytes() const { return budget_control_.total_bytes(); }
  uint64_t least_budget_bytes() const { return budget_control_.least_bytes(); }
  // How much of the budget is in use: by pages, buffers, and stores to which memory is lent.
  uint64_t used_bytes() const;
  // How much memory our tables use, at most a tenth of a second ago (the kernel must be asked page
  // by page).
  uint64_t metadata_bytes() const;
  void add_to(Metrics& metrics) const;  // the gauges and policies

  // -- what our threads do: called by a simulation, which has no threads --
  bool run_prefetch() { return prefetcher_.run_one(); }
  bool keep(Shard& shard) { return keeper_.keep(shard); }
  SharedWriter& writer() { return writer_; }

 private:
  explicit Engine(const PagerOptions& options);
  void start_threads();

  // Each piece uses those before it.
  Pager pager_;
  PrefetchQueue queue_;
  Keeper keeper_;
  FrameSupply supply_;
  Filler filler_;
  SharedFiller shared_;
  SharedWriter writer_;
  ClusterFiller clusters_;
  Remapper remapper_;
  Prefetcher prefetcher_;
  Replayer replayer_;
  Readahead readahead_;
  FaultPath fault_path_;
  FreshPages fresh_pages_;
  Pins pins_;
  Flusher flusher_;
  Ranges ranges_;
  Discarder discarder_;
  ViewList views_;
  Freezer freezer_;
  Reshaper reshaper_;
  Overwriter overwriter_;
  BudgetControl budget_control_;
  std::shared_ptr<Lending> lending_;
  PageCacheList caches_;
  os::Lock cut_lock_;
  mutable std::atomic<uint64_t> metadata_bytes_{0}, metadata_ns_{0};  // when they were looked at
  std::vector<std::thread> threads_;
};

}  // namespace outcore::paging
