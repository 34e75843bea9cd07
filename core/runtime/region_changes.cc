#include "core/runtime/region_changes.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/region/view_pool.h"
#include "core/runtime/mapper.h"

namespace outcore::runtime {

using paging::PageCache;
using region::View;
using region::ViewPool;

Status RegionChanges::cut(Region::Impl& region, uint64_t from, uint64_t to,
                          std::unique_ptr<Region::Impl>* right,
                          const std::function<void()>& between) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  View* old = region.view;
  const uint64_t end = old->reserved_bytes;
  OC_CHECK(region.is_lent);
  OC_CHECK(from <= to);
  OC_CHECK(to <= end);
  OC_CHECK(from > 0 || to < end);
  std::array<View*, 2> parts{};
  size_t count = 0;
  if (from > 0) parts[count++] = ViewPool::instance().allocate_part(*old, 0, from);
  if (to < end) parts[count++] = ViewPool::instance().allocate_part(*old, to, end);
  if (Status s = runtime_.engine->swap_view(*region.cache, old, {parts.data(), count}, between);
      !s) {
    for (size_t i = 0; i < count; ++i) ViewPool::instance().free(parts[i]);
    return s;
  }
  ViewPool::instance().free(old);
  show(region, {parts.data(), count}, right);
  return {};
}

Status RegionChanges::give(Region::Impl& region, base::FunctionRef<Status()> prepare,
                           base::FunctionRef<Status()> place) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  OC_CHECK(region.is_lent);
  if (region.cache->view_count == 1)
    return Error{EBUSY, "give all of " + region.uri + " to the kernel: it is used"};
  View* const old = region.view;
  View* const twin = ViewPool::instance().allocate_part(*old, 0, old->reserved_bytes);
  const Status s = runtime_.engine->give_view(*region.cache, &region.view, twin, prepare, place);
  if (region.view != old) ViewPool::instance().free(old);
  if (region.view != twin) ViewPool::instance().free(twin);
  if (region.view == nullptr) std::erase(runtime_.regions, &region);
  return s;
}

// The region has the first of the views, and `right`, which is new, the second.
void RegionChanges::show(Region::Impl& region, std::span<View* const> parts,
                         std::unique_ptr<Region::Impl>* right) {
  OC_CHECK(!parts.empty());
  right->reset();
  region.view = parts[0];
  region.reserve_bytes = parts[0]->reserved_bytes;
  if (parts.size() == 1) return;
  *right = std::make_unique<Region::Impl>();
  (*right)->runtime = region.runtime;
  (*right)->cache = region.cache;
  (*right)->view = parts[1];
  (*right)->cache_key = region.cache_key;
  (*right)->uri = region.uri;
  (*right)->access = region.access;
  (*right)->reserve_bytes = parts[1]->reserved_bytes;
  (*right)->is_lent = true;
  (*right)->generation = region.generation.load();
  runtime_.regions.push_back(right->get());
}

Status RegionChanges::extend(Region::Impl& region, uint64_t size_bytes, uint64_t store_bytes) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  OC_CHECK(size_bytes <= region.reserve_bytes);
  return runtime_.engine->extend_view(*region.cache, region.view, size_bytes, store_bytes);
}

Status RegionChanges::hand_back(const std::vector<Region::Impl*>& all,
                                const std::function<Status()>& place) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  if (all.empty()) return {};
  PageCache& cache = *all.front()->cache;
  OC_CHECK(cache.view_count == all.size());
  if (Status s = runtime_.engine->hand_to_kernel(cache, place); !s) return s;
  for (Region::Impl* region : all) {
    OC_CHECK(region->cache == &cache);
    OC_CHECK(region->view != nullptr);
    runtime_.engine->hide_view(region->view);
    runtime_.engine->remove_view(region->view);
    ViewPool::instance().free(region->view);
    region->view = nullptr;
    std::erase(runtime_.regions, region);
  }
  runtime_.mapper->drop_cache(all.front()->cache_key);
  return {};
}

Status RegionChanges::with_blocked_range(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                                         base::FunctionRef<void()> between) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  return runtime_.engine->change_absent(cache, offset, size_bytes, between);
}

Status RegionChanges::overwrite(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                                base::FunctionRef<void()> change) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  return runtime_.engine->overwrite(cache, offset, size_bytes, change);
}

Status RegionChanges::protect(Region::Impl& region, bool is_readable, bool is_writable,
                              const std::function<Status(bool, bool)>& protect_in_kernel) {
  const std::lock_guard<std::mutex> guard(runtime_.mapping);
  View& view = *region.view;
  const os::SignalBlock block;
  const auto evict = [&] {
    return runtime_.engine->evict(*region.cache, view.first_page(), view.end_page());
  };
  const bool was_writable = view.is_writable;
  // Pages that become writable were filled as read-only: they must be evicted and filled again.
  if (is_writable && !was_writable) {
    view.is_writable = true;
    if (Status s = evict(); !s) {
      view.is_writable = false;
      return s;
    }
  }
  // Pages that become read-only are written back while they can still be read.
  if (!is_writable && was_writable) {
    if (Status s = protect_in_kernel(true, false); !s) return s;
    if (Status s = evict(); !s) {
      static_cast<void>(protect_in_kernel(true, true));
      return s;
    }
    view.is_writable = false;
  }
  view.is_closed = !is_readable;
  return protect_in_kernel(is_readable, is_writable);
}

}  // namespace outcore::runtime
