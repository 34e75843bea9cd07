#include "core/paging/frame_supply.h"

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"

namespace outcore::paging {

using metrics::Counter;

int FrameSupply::allocate_frame(PageCache& cache, Caller caller, uint64_t wait_ns,
                                uint32_t* frame) {
  uint64_t start_ns = 0;
  std::optional<os::WaitLimit> wait;
  for (uint32_t attempt = 0;; ++attempt) {
    const uint32_t changes = pager_.budget.changes();
    const uint32_t approaches = pager_.approaches.load();
    const os::MappingHeadroom headroom = cache.frames->mapping_headroom();
    if (headroom != os::MappingHeadroom::kAmple)
      pager_.is_crowded.store(true, std::memory_order_relaxed);
    if (headroom != os::MappingHeadroom::kNone && pager_.budget.try_acquire(cache.page_bytes)) {
      *frame = pager_.frames.allocate_frame();
      if (*frame != budget::kNone) break;
      pager_.budget.release(cache.page_bytes);
    }
    if (start_ns == 0) {
      if (wait_ns == 0) return -ENOMEM;
      start_ns = os::now_ns();
      wait.emplace(wait_ns);
      cache.counters.add(Counter::waits_for_frame, 1);
    }
    const bool is_over = wait->is_over();
    if (keeper_.help(caller, attempt)) continue;
    // What is written cannot be stored, and nothing else can leave: to wait would be in vain.
    // Unless it is so because the limit was lower for a moment.
    if (const int error = pager_.stall.error();
        error != 0 && approaches % 2 == 0 && approaches == pager_.approaches.load())
      return error;
    if (is_over || wait->is_over_after_work()) return -ENOMEM;
    keeper_.call_keepers();
    pager_.budget.wait_for_change(changes, 2'000'000);
  }
  OC_CHECK(*frame < pager_.frames.count());
  if (start_ns != 0) cache.counters.add(Counter::wait_for_frame_ns, os::now_ns() - start_ns);
  const uint64_t used = pager_.budget.used(), limit = pager_.budget.limit();
  const bool is_crowded = pager_.is_crowded.load();
  if (!is_above_high_watermark(used) && !is_crowded) return 0;
  if (!is_crowded && may_evict_itself(cache, caller) && evict_itself(caller, *frame)) return 0;
  keeper_.call_keepers();
  // Nearly full: the keepers are behind (more fillers than cores). A batch evicted here is a wait
  // saved for all.
  if (used > limit - std::max(limit / 128, 4 * cache.page_bytes))
    keeper_.help(caller, static_cast<uint32_t>(*frame));
  return 0;
}

// While one thread alone misses pages, it may take them out itself instead of calling a keeper, if
// its pages may be written and its store is fast. Each written page is protected before it is
// written back, which interrupts the other processors that run threads of this process: 20 µs each
// on a virtual machine, and the keeper and that thread would interrupt each other.
bool FrameSupply::may_evict_itself(const PageCache& cache, Caller caller) {
  if (caller != Caller::kFault || cache.delivery == Delivery::kMessages ||
      !cache.traits.is_fault_safe || cache.traits.has_slow_writes || !cache.is_writable.load())
    return false;
  const bool is_one = pager_.readers.is_one();
  if (!is_one) choice_.interrupt();
  return is_one;
}

// False: the keepers are to be called.
bool FrameSupply::evict_itself(Caller caller, uint32_t first_choice) {
  const uint64_t now_ns = os::now_ns();
  const WriteCost::Level cost = pager_.write_cost.level(now_ns);
  const bool is_trial = cost == WriteCost::Level::kUnknown;
  // Not all misses are counted (Advice::kRandom): of those that are, some must be new.
  constexpr uint64_t kMissesATrial = 64;
  const uint64_t misses = pager_.readers.misses();
  if (cost != WriteCost::Level::kLow) choice_.interrupt();
  if (cost == WriteCost::Level::kHigh ||
      misses - misses_seen_.load(std::memory_order_relaxed) < (is_trial ? kMissesATrial : 1))
    return false;
  misses_seen_.store(misses, std::memory_order_relaxed);
  const uint64_t rescues = pager_.rescues.load(std::memory_order_relaxed);
  if (!is_trial && !choice_.is_itself(misses + rescues, now_ns)) return false;
  constexpr uint32_t kTrialVictims = 4;
  if (!keeper_.help(caller, first_choice, is_trial ? kTrialVictims : Keeper::kHelpVictims) ||
      is_trial)
    return false;
  return !is_above_high_watermark(pager_.budget.used());
}

bool FrameSupply::is_above_high_watermark(uint64_t used_bytes) const {
  return used_bytes > pager_.budget.limit() / 100 * pager_.options.high_watermark;
}

void FrameSupply::free_frame(PageCache& cache, uint32_t frame) {
  OC_CHECK(frame < pager_.frames.count());
  OC_ASSERT(pager_.frames[frame].list == 0);
  std::atomic_ref(pager_.frames[frame].cache).store(budget::kNone, std::memory_order_relaxed);
  pager_.frames.free_frame(frame);
  pager_.budget.release(cache.page_bytes);
}

bool FrameSupply::can_repeat(int result, Caller caller, uint32_t* tries) {
  constexpr uint32_t kTriesMax = 64;
  OC_ASSERT(*tries <= kTriesMax);
  return result == -ENOMEM && *tries < kTriesMax && keeper_.help(caller, (*tries)++);
}

}  // namespace outcore::paging
