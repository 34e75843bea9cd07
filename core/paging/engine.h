// Engine: the pager of one runtime. It decides; policy, budget, stores and frames compute and
// return.
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
#include <vector>

#include "core/base/assert.h"
#include "core/os/signal_delivery.h"
#include "core/paging/discarder.h"
#include "core/paging/failed_pages.h"
#include "core/paging/fault_path.h"
#include "core/paging/filler.h"
#include "core/paging/flusher.h"
#include "core/paging/frame_supply.h"
#include "core/paging/fresh_pages.h"
#include "core/paging/keeper.h"
#include "core/paging/lending.h"
#include "core/paging/pager.h"
#include "core/paging/prefetch_queue.h"
#include "core/paging/prefetcher.h"
#include "core/paging/ranges.h"
#include "core/paging/readahead.h"
#include "core/paging/remapper.h"
#include "outcore/metrics.h"
#include "outcore/result.h"

namespace outcore::paging {

struct CutCalls;
struct CutReport;

class Engine {
 public:
  static constexpr uint64_t kKeptShare = 4;  // of the budget is never lent
  static constexpr uint64_t kLendPiece = 256 << 10, kLendNs = 5'000'000'000;

  // Errors: EINVAL (policy; a budget that is too small, with the least that would do), ENOMEM.
  static Result<std::unique_ptr<Engine>> start(const PagerOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();  // REQUIRES: no space is left

  // -- spaces and views; calls of the program --
  Status add_space(
      Space* space);  // EINVAL: the budget is too small for its pages, with the least that would do
  // Frees every frame, dirty or not, pinned or not. REQUIRES: nobody faults on the space any more.
  void drop_frames(Space& space);
  void remove_space(Space* space);  // REQUIRES: no frame and no view of it is left
  // Replaces frames that only one view can show by others, with the pages evicted in between: a
  // second view comes.
  Status replace_frames(Space& space, std::unique_ptr<os::Frames> frames);
  // The store was found longer than it was: pages from its old end on are evicted, and shown anew.
  // Errors: EBUSY (one is pinned), those of a write-back.
  Status lengthen(Space& space, uint64_t store_bytes);
  // Writes back and evicts everything, and keeps it so until resume(): who touches a page waits.
  // Errors: as replace_frames, and then nothing is kept.
  Status halt(Space& space);
  void resume(Space& space);
  Status add_view(
      Space& space,
      region::View* view);  // attaches frames; the view is in the address map afterwards
  void remove_view(region::View* view);  // detaches; REQUIRES: flushed, and out of the address map

  // -- doors: views change their shape while the program goes on; see reshape.cc. All of these
  // REQUIRE the runtime's mapping lock, or two of them could wait for each other --
  // Evicts the pages and keeps them out, so that their bytes can change in the store: who touches
  // one waits. REQUIRES: let_in() soon. Errors: EBUSY (pinned, or touched all the time), those of a
  // write-back; then none is held.
  Status hold_out(Space& space, uint64_t first, uint64_t end);
  void let_in(Space& space, uint64_t first, uint64_t end);
  // Puts views of parts of its addresses, sorted, in the place of a view; the kernel's mappings
  // stay. `between` runs when nobody faults through the old one any more and what the parts leave
  // out is held out. Errors: as hold_out, and then nothing has changed.
  Status swap_view(Space& space, region::View* old, std::span<region::View* const> parts,
                   const std::function<void()>& between);
  // Makes the view longer, over whatever is mapped there. The store has `store_bytes` now.
  Status extend_view(Space& space, region::View* view, uint64_t size_bytes, uint64_t store_bytes);
  // Writes back and evicts everything, and lets `place` put something else where the views are;
  // from then on the space answers no fault. Errors: as hold_out and what `place` says; then
  // nothing has changed.
  Status give_up(Space& space, const std::function<Status()>& place);

  // -- the fault path --
  os::FaultOutcome fault(region::View& view, std::byte* address, bool is_write) {
    return fault_path_.fault(view, address, is_write);
  }
  void fill_many(region::View& view, std::span<const os::Touch> touches) {
    fault_path_.fill_many(view, touches);
  }
  int bring_in(region::View& view, uint64_t page, std::byte* address, bool is_write,
               Caller caller) {
    return fault_path_.bring_in(view, page, address, is_write, caller);
  }

  // -- calls of the program; pages are the space's. All with signals blocked --
  Status flush(Space& space, uint64_t first, uint64_t end,
               OnTimeout on_timeout = OnTimeout::kStop) {
    return flusher_.flush(space, first, end, on_timeout);
  }
  Status flush_aside(Space& space, uint64_t first, uint64_t end) {
    return flusher_.flush_aside(space, first, end);
  }
  // One consistent cut over the spaces, while the program runs on: see cut.h. One at a time; others
  // wait. REQUIRES: the spaces live until it returns.
  Result<CutReport> cut(std::span<Space* const> spaces, const CutCalls& calls);
  Status pin(region::View& view, const std::byte* from, uint64_t size_bytes);
  Status unpin(region::View& view, const std::byte* from, uint64_t size_bytes);
  // Keeps one page resident and shown while the caller copies: like a pin, but not for the kernel's
  // writes.
  int hold(region::View& view, uint64_t page, std::byte* address, bool is_write);
  void release(Space& space, uint64_t page);
  Status evict(Space& space, uint64_t first, uint64_t end) {
    return ranges_.evict(space, first, end);
  }
  void make_cold(Space& space, uint64_t first, uint64_t end) {
    ranges_.make_cold(space, first, end);
  }
  Status discard(Space& space, uint64_t offset, uint64_t size_bytes) {
    return discarder_.discard(space, offset, size_bytes);
  }
  bool retry_failed(Space& space, uint64_t first, uint64_t end) {
    return paging::retry_failed(space, first, end);
  }
  Status retry_zeroed(Space& space, uint64_t first, uint64_t end) {
    return ranges_.retry_zeroed(space, first, end);
  }
  Status end_zeroed(Space& space) { return ranges_.end_zeroed(space); }
  void prepare(region::View& view, uint64_t first, uint64_t end) {
    fresh_pages_.prepare(view, first, end);
  }
  void prefetch(region::View& view, uint64_t first, int64_t stride, uint64_t count) {
    prefetcher_.prefetch(view, first, stride, count);
  }
  Status resize_budget(uint64_t bytes);
  // Memory of the budget for stores that have no other space; see lending.h. lend() is 0 or
  // -ENOSPC, with pages evicted meanwhile.
  int lend(uint64_t bytes);
  void take_back(uint64_t bytes);  // REQUIRES: lent
  uint64_t lendable_bytes() const;
  uint64_t budget_bytes() const { return pager_.budget.limit() + lent_bytes_.load(); }

  // -- turns: keeper threads, fillers without a frame, simulations --
  bool run_prefetch() { return prefetcher_.run_one(); }
  bool keep(Shard& shard) { return keeper_.keep(shard); }

  void add_to(Metrics& metrics) const;  // the gauges

  Pager& pager() { return pager_; }

 private:
  friend class Cut;
  explicit Engine(const PagerOptions& options);
  void start_threads();
  Status limit_pages(uint64_t bytes);
  void forget_capacities();

  // reshape.cc
  Status put_parts(Space& space, std::span<region::View* const> parts);
  Status replace_view(Space& space, region::View* old, std::span<region::View* const> parts);
  void hand_on_shown(Space& space, const region::View& old, std::span<region::View* const> parts);
  // pin.cc
  Status claim_pins(const Space& space, uint64_t first, uint64_t end, uint64_t* claimed_bytes);
  // freeze.cc
  Status empty(Space& space, uint64_t first, uint64_t last_end, const char* what);
  Status put_view(Space& space, region::View* view);
  void forget_view(Space& space, region::View* view);
  void wait_for_lookers(const Space& space, uint64_t first, uint64_t end);

  Pager pager_;
  PrefetchQueue queue_;
  Keeper keeper_;
  FrameSupply supply_;
  Filler filler_;
  Remapper remapper_;
  Prefetcher prefetcher_;
  Readahead readahead_;
  FaultPath fault_path_;
  FreshPages fresh_pages_;
  Flusher flusher_;
  Ranges ranges_;
  Discarder discarder_;
  std::atomic<uint64_t> lent_bytes_{0};
  std::shared_ptr<Lending> lending_;
  std::vector<std::thread> threads_;
  os::Lock resize_lock_;
  os::Lock cut_lock_;
};

}  // namespace outcore::paging
