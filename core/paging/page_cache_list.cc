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

Status PageCacheList::add(PageCache* space) {
  OC_CHECK(base::is_power_of_two(space->page_bytes));
  OC_CHECK(space->page_bytes >= base::kSystemPage);
  OC_CHECK(space->page_bytes <= base::kPageBytesMax);
  OC_CHECK(space->store.load() != nullptr);
  const uint64_t least = pager_.least_budget(space->page_bytes);
  if (least > pager_.budget.limit())
    return Error{EINVAL, "map " + space->uri + ": the budget of " +
                             format_bytes(pager_.budget.limit()) + " is too small for pages of " +
                             format_bytes(space->page_bytes) + "; the least that would do is " +
                             format_bytes(least)};
  if (Status s = space->views.allocate(PageCache::kViewsMax); !s) return s;
  const os::SignalBlock block;
  const os::Locked locked(pager_.spaces_lock);
  uint32_t id = 0;
  while (id < Pager::kSpacesMax && pager_.spaces[id].load() != nullptr) ++id;
  if (id == Pager::kSpacesMax)
    return Error{ENOMEM, "map " + space->uri + ": a runtime can have at most 1048576 stores"};
  space->id = id;
  if (auto* lodger = dynamic_cast<store::Lodger*>(space->store.load()); lodger != nullptr)
    lodger->use_room(room_);
  pager_.spaces[id].store(space, std::memory_order_release);
  if (id >= pager_.spaces_end) pager_.spaces_end = id + 1;
  uint64_t largest = pager_.page_bytes_max.load();
  while (space->page_bytes > largest &&
         !pager_.page_bytes_max.compare_exchange_weak(largest, space->page_bytes)) {
  }
  return {};
}

void PageCacheList::drop_frames(PageCache& space) {
  const os::SignalBlock block;
  const bool is_by_page = space.page_count() <= 4 * uint64_t{pager_.frames.used_once()};
  while (space.resident_bytes.load() != 0) {
    for (const auto& shard : pager_.shards) {
      const os::Locked turn(shard->turn);
      const uint64_t end = is_by_page ? space.page_count() : pager_.frames.used_once();
      for (uint64_t i = 0; i < end;) {
        Eviction eviction(pager_, *shard, Caller::kThread);
        eviction.drain_inbox();
        uint64_t busy = 0;
        for (; i < end && !eviction.is_full(); ++i) {
          uint64_t page = i;
          if (!is_by_page) {  // it may be changing hands: another's page is not ours to look at
            budget::FrameRecord& record = pager_.frames[static_cast<uint32_t>(i)];
            if (std::atomic_ref(record.space).load() != space.id) continue;
            page = std::atomic_ref(record.page).load();
            if (page >= space.page_count()) continue;
          }
          const PageValue seen = space.words[page].load();
          if (seen.state() == PageState::kAbsent) continue;
          if (seen.pins() != 0) {  // the region goes, and its pins with it
            const uint64_t pinned = pager_.pinned_bytes.fetch_sub(space.page_bytes);
            OC_CHECK(pinned >= space.page_bytes);
            space.words[page].update(
                [](PageValue v) { return v.with_pins(0).minus(PageValue::kParked); });
          }
          eviction.take_page(space, page, &busy);
        }
        eviction.clean(Bytes::kDrop);
        eviction.free();
      }
    }
    if (space.resident_bytes.load() == 0) return;
    // A late prefetch or write-back still holds a page; or the program has locked the memory.
    for (uint32_t i = 0; i < space.views_end.load(std::memory_order_acquire); ++i)
      if (const View* view = space.views[i].load(); view != nullptr)
        space.frames->unlock(
            {view->address, view->offset, view->mapped_bytes(), view->is_writable, 0});
    os::yield();
  }
}

void PageCacheList::remove(PageCache* space) {
  OC_CHECK(space->resident_bytes.load() == 0);
  OC_CHECK(space->view_count.load() == 0);
  OC_CHECK(pager_.space_of(space->id) == space);
  const os::SignalBlock block;
  // Whoever holds a turn may be looking at it.
  for (const auto& shard : pager_.shards) {
    const os::Locked turn(shard->turn);
    Eviction(pager_, *shard, Caller::kThread).drain_inbox();
  }
  const os::Locked locked(pager_.spaces_lock);
  pager_.spaces[space->id].store(nullptr, std::memory_order_release);
}

}  // namespace outcore::paging
