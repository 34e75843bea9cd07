#include "core/paging/page_cache_list.h"

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/paging/eviction.h"

namespace outcore::paging {

using base::format_bytes;
using region::PageState;
using region::PageValue;
using region::View;

Status PageCacheList::check_page_bytes(const std::string& uri, uint64_t page_bytes) const {
  const uint64_t least = pager_.least_budget(page_bytes);
  if (least <= pager_.budget.limit()) return {};
  return Error{EINVAL, "map " + uri + ": the budget of " + format_bytes(pager_.budget.limit()) +
                           " is too small for pages of " + format_bytes(page_bytes) +
                           "; the least that would do is " + format_bytes(least)};
}

Status PageCacheList::add(PageCache* cache) {
  OC_CHECK(base::is_power_of_two(cache->page_bytes));
  OC_CHECK(cache->page_bytes >= base::kSystemPage);
  OC_CHECK(cache->page_bytes <= base::kPageBytesMax);
  OC_CHECK(cache->store.load() != nullptr);
  if (Status s = check_page_bytes(cache->uri, cache->page_bytes); !s) return s;
  if (Status s = cache->views.allocate(PageCache::kViewsMax); !s) return s;
  const os::SignalBlock block;
  const os::Locked locked(pager_.caches_lock);
  uint32_t id = 0;
  while (id < Pager::kCachesMax && pager_.caches[id].load() != nullptr) ++id;
  if (id == Pager::kCachesMax)
    return Error{ENOMEM, "map " + cache->uri + ": a runtime can have at most 1048576 stores"};
  cache->id = id;
  if (auto* lodger = dynamic_cast<store::Lodger*>(cache->store.load()); lodger != nullptr)
    lodger->use_room(room_);
  pager_.caches[id].store(cache, std::memory_order_release);
  if (id >= pager_.caches_end) pager_.caches_end = id + 1;
  uint64_t largest = pager_.page_bytes_max.load();
  while (cache->page_bytes > largest &&
         !pager_.page_bytes_max.compare_exchange_weak(largest, cache->page_bytes)) {
  }
  return {};
}

void PageCacheList::drop_frames(PageCache& cache) {
  const os::SignalBlock block;
  const bool is_by_page = cache.page_count() <= 4 * uint64_t{pager_.frames.used_once()};
  while (cache.resident_bytes.load() != 0) {
    for (const auto& shard : pager_.shards) {
      const os::Locked turn(shard->turn);
      const uint64_t end = is_by_page ? cache.page_count() : pager_.frames.used_once();
      for (uint64_t i = 0; i < end;) {
        Eviction eviction(pager_, *shard, Caller::kThread);
        eviction.drain_inbox();
        uint64_t busy = 0;
        for (; i < end && !eviction.is_full(); ++i) {
          uint64_t page = i;
          if (!is_by_page) {  // it may be changing hands: another's page is not ours to look at
            budget::FrameRecord& record = pager_.frames[static_cast<uint32_t>(i)];
            if (std::atomic_ref(record.cache).load() != cache.id) continue;
            page = std::atomic_ref(record.page).load();
            if (page >= cache.page_count()) continue;
          }
          const PageValue seen = cache.words[page].load();
          if (seen.state() == PageState::kAbsent) continue;
          if (seen.pins() != 0) {  // the region goes, and its pins with it
            const uint64_t pinned = pager_.pinned_bytes.fetch_sub(cache.page_bytes);
            OC_CHECK(pinned >= cache.page_bytes);
            cache.words[page].update(
                [](PageValue v) { return v.with_pins(0).minus(PageValue::kParked); });
          }
          eviction.add_page(cache, page, &busy);
        }
        eviction.clean(Bytes::kDrop);
        eviction.free();
      }
    }
    if (cache.resident_bytes.load() == 0) return;
    // A late prefetch or write-back still holds a page; or the program has locked the memory.
    for (uint32_t i = 0; i < cache.views_end.load(std::memory_order_acquire); ++i)
      if (const View* view = cache.views[i].load(); view != nullptr)
        cache.frames->unlock(
            {view->address, view->offset, view->mapped_bytes(), view->is_writable, 0});
    os::yield();
  }
}

void PageCacheList::remove(PageCache* cache) {
  OC_CHECK(cache->resident_bytes.load() == 0);
  OC_CHECK(cache->view_count.load() == 0);
  OC_CHECK(pager_.cache_of(cache->id) == cache);
  const os::SignalBlock block;
  // Whoever holds a turn may be looking at it.
  for (const auto& shard : pager_.shards) {
    const os::Locked turn(shard->turn);
    Eviction(pager_, *shard, Caller::kThread).drain_inbox();
  }
  const os::Locked locked(pager_.caches_lock);
  pager_.caches[cache->id].store(nullptr, std::memory_order_release);
}

}  // namespace outcore::paging
