#include "core/paging/view_list.h"

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using region::PageState;
using region::PageValue;
using region::View;

Status ViewList::add(PageCache& cache, View* view) {
  OC_CHECK(view->offset % base::kSystemPage == 0);
  OC_CHECK(reinterpret_cast<uintptr_t>(view->address) % base::kSystemPage == 0);
  OC_CHECK(view->mapped_bytes() <= view->reserved_bytes);
  OC_CHECK(pager_.cache_of(cache.id) == &cache);
  view->cache = &cache;
  view->page_bytes = cache.page_bytes;
  if (cache.frames->can_share()) {
    const uint64_t pages =
        (view->offset + view->reserved_bytes) / cache.page_bytes + 1 - view->first_page();
    if (Status s = view->shown.allocate((pages + 63) / 64 + 1); !s) return s;
  }
  if (view->mapped_bytes() != 0)
    if (Status s = cache.frames->attach(
            {view->address, view->offset, view->mapped_bytes(), view->is_writable, 0});
        !s)
      return s;
  const os::SignalBlock block;
  if (Status s = insert(cache, view); !s) return s;
  return region::AddressMap::instance().add(view);
}

Status ViewList::insert(PageCache& cache, View* view) {
  const os::Locked locked(pager_.caches_lock);
  uint32_t slot = 0;
  while (slot < PageCache::kViewsMax && cache.views[slot].load() != nullptr) ++slot;
  if (slot == PageCache::kViewsMax)
    return Error{ENOMEM, "map " + cache.uri + ": a store can have at most 65536 regions"};
  cache.views[slot].store(view, std::memory_order_release);
  const uint32_t before = cache.view_count.fetch_add(1);
  OC_CHECK(before < PageCache::kViewsMax);
  cache.entry->add_place(slot, reinterpret_cast<uint64_t>(view->address), view->reserved_bytes);
  if (slot >= cache.views_end) cache.views_end.store(slot + 1, std::memory_order_release);
  return {};
}

void ViewList::remove(View* view) {
  PageCache& cache = *view->cache;
  const os::SignalBlock block;
  forget(cache, view);
  cache.frames->detach({view->address, view->offset, view->mapped_bytes(), view->is_writable, 0});
}

void ViewList::forget(PageCache& cache, View* view) {
  uint32_t slot = 0;
  while (slot < cache.views_end && cache.views[slot].load() != view) ++slot;
  const uint32_t before = slot < cache.views_end ? cache.view_count.fetch_sub(1) : 1;
  OC_CHECK(before != 0);
  if (slot < cache.views_end) cache.entry->remove_place(slot);
  // After each of their turns nobody who evicts looks at it.
  for (const auto& shard : pager_.shards) {
    const os::Locked turn(shard->turn);
    View* expected = view;
    if (slot < cache.views_end) cache.views[slot].compare_exchange_strong(expected, nullptr);
  }
  if (cache.view_count > 0) wait_for_lookers(cache, 0, cache.page_count());
  while (cache.retries.load(std::memory_order_seq_cst) != 0) os::yield();
}

void ViewList::wait_for_lookers(const PageCache& cache, uint64_t first, uint64_t end) {
  pager_.for_each_framed(cache, first, end, [&](uint64_t page) {
    const auto is_looked_at = [&] {
      const PageValue seen = cache.words[page].load();
      return seen.state() == PageState::kBusy || seen.state() == PageState::kFrozen ||
             seen.has(PageValue::kWriting);
    };
    while (is_looked_at()) os::yield();
  });
}

}  // namespace outcore::paging
