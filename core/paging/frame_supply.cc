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
    const os::Room room = cache.frames->room();
    if (room != os::Room::kAmple) pager_.is_crowded.store(true, std::memory_order_relaxed);
    if (room != os::Room::kNone && pager_.budget.try_acquire(cache.page_bytes)) {
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
    if (keeper_.help(caller, attempt)) continue;
    // What is written cannot be stored, and nothing else can leave: to wait would be in vain.
    // Unless it is so because the limit was lower for a moment.
    if (const int error = pager_.stall.error();
        error != 0 && approaches % 2 == 0 && approaches == pager_.approaches.load())
      return error;
    if (wait->is_over()) return -ENOMEM;
    keeper_.call_keepers();
    pager_.budget.wait_for_change(changes, 2'000'000);
  }
  OC_CHECK(*frame < pager_.frames.count());
  if (start_ns != 0) cache.counters.add(Counter::wait_for_frame_ns, os::now_ns() - start_ns);
  const uint64_t used = pager_.budget.used(), limit = pager_.budget.limit();
  if (used <= limit / 100 * pager_.options.high_watermark && !pager_.is_crowded.load()) return 0;
  if (evicts_itself(cache, caller) && keeper_.help(caller, static_cast<uint32_t>(*frame))) return 0;
  keeper_.call_keepers();
  // Nearly full: the keepers are behind (more fillers than cores). A batch evicted here is a wait
  // saved for all.
  if (used > limit - std::max(limit / 128, 4 * cache.page_bytes))
    keeper_.help(caller, static_cast<uint32_t>(*frame));
  return 0;
}

// Each written page is protected while it is written back: an interrupt of every other processor
// that runs a thread of this process, 20 µs on a virtual machine. While one thread alone touches
// pages, and is here, there is no such processor unless a keeper's thread runs. That pays where the
// store takes less for a page.
bool FrameSupply::evicts_itself(const PageCache& cache, Caller caller) const {
  return caller == Caller::kFault && cache.delivery != Delivery::kMessages &&
         cache.traits.is_fault_safe && !cache.traits.has_slow_writes && cache.is_writable.load() &&
         cache.write_cost.is_low() && pager_.readers.is_one();
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
