#include "core/paging/freezer.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait_limit.h"
#include "core/paging/freeze.h"

namespace outcore::paging {

using region::PageState;
using region::PageValue;
using region::View;

namespace {

constexpr const char* kOnceMore = "map once more ";

uint64_t mapped_end(const PageCache& cache) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < cache.views_end.load(std::memory_order_acquire); ++i)
    if (const View* view = cache.views[i].load(); view != nullptr)
      end = std::max(end, view->end_page());
  return std::min(end, cache.page_count());
}

os::Piece whole_of(const View& view) {
  return {view.address, view.offset, view.mapped_bytes(), view.is_writable, 0};
}

}  // namespace

// Evicts the pages from `first` to `last_end`, or to the end. REQUIRES: the cache is frozen.
Status Freezer::empty(PageCache& cache, uint64_t first, uint64_t last_end, const char* what) {
  OC_CHECK(cache.is_frozen.load());
  constexpr uint64_t kNsMax = 5'000'000'000;  // who touches a page all the time may rescue it often
  if (cache.shared != nullptr) {  // others keep its pages; of ours nobody may be bringing one in
    if (!cache.shared->block(kNsMax))
      return Error{EBUSY, what + cache.uri + ": a page of it is being read for very long"};
    cache.shared->unblock();
    return {};
  }
  os::WaitLimit limit(kNsMax);
  uint64_t end = std::min(mapped_end(cache), last_end);
  const region::TouchedGroups& touched = cache.touched;
  for (uint64_t page = first; (page = touched.next(page, end)) < end; ++page)
    while (cache.words[page].load().state() == PageState::kFilling) os::yield();
  for (;;) {
    if (Status s = ranges_.evict(cache, first, end); !s) return s;
    bool is_empty = true;
    for (uint64_t page = first; (page = touched.next(page, end)) < end; ++page) {
      const PageValue seen = cache.words[page].load();
      if (seen.pins() != 0)
        return Error{EBUSY, what + cache.uri + ": page " + std::to_string(page) +
                                " of a region of it is pinned; unpin it first"};
      is_empty =
          is_empty && (seen.state() == PageState::kAbsent || seen.state() == PageState::kFailed);
    }
    // Pages that no view shows any more may be there still.
    if (is_empty && first == 0 && end < std::min(last_end, cache.page_count()) &&
        cache.resident_bytes.load() != 0) {
      end = cache.page_count();
      continue;
    }
    if (is_empty) return {};
    if (limit.is_over())
      return Error{EBUSY, what + cache.uri + ": its memory cannot be freed; is it locked (mlock)?"};
    os::yield();
  }
}

Status Freezer::replace_frames(PageCache& cache, std::unique_ptr<os::Frames> frames) {
  OC_CHECK(frames != nullptr);
  OC_CHECK(frames->can_share());
  const Freeze freeze(cache);
  if (Status s = empty(cache, 0, UINT64_MAX, kOnceMore); !s) return s;
  // More than one only where a door has cut a view in parts: they show different pages.
  std::vector<View*> views;
  for (uint32_t i = 0; i < cache.views_end; ++i)
    if (View* v = cache.views[i].load(); v != nullptr) views.push_back(v);
  OC_CHECK(views.size() == cache.view_count.load());
  for (View* view : views) {
    const uint64_t pages =
        (view->offset + view->reserved_bytes) / cache.page_bytes + 1 - view->first_page();
    if (view->shown.count() == 0)
      if (Status s = view->shown.allocate((pages + 63) / 64 + 1); !s) return s;
  }
  for (size_t i = 0; i < views.size(); ++i) {
    // A touch from here to the end may find the range inaccessible, and waits in the handler for
    // the thaw.
    const os::Piece whole = whole_of(*views[i]);
    if (whole.size_bytes == 0) continue;
    if (Status s = frames->replace(whole); !s) {
      for (size_t k = 0; k < i; ++k)
        if (whole_of(*views[k]).size_bytes != 0)
          OC_CHECK(cache.frames->replace(whole_of(*views[k])).ok());
      return s;
    }
    cache.frames->wake(whole);  // who waits there asks the new ones
  }
  cache.frames = std::move(frames);
  return {};
}

Status Freezer::halt(PageCache& cache) {
  const os::SignalBlock block;
  cache.is_frozen.store(true, std::memory_order_seq_cst);
  Status s = empty(cache, 0, UINT64_MAX, "copy ");
  if (!s.ok()) resume(cache);
  return s;
}

void Freezer::resume(PageCache& cache) { cache.is_frozen.store(false, std::memory_order_seq_cst); }

Status Freezer::lengthen(PageCache& cache, uint64_t store_bytes) {
  const uint64_t before = cache.store_bytes.load();
  if (store_bytes <= before) return {};
  // What pages show past the old end are zeros, and what was written there was never to be kept.
  const Freeze freeze(cache);
  if (Status s = empty(cache, before / cache.page_bytes, UINT64_MAX, kOnceMore); !s) return s;
  cache.store_bytes.store(store_bytes, std::memory_order_release);
  return {};
}

Status Freezer::extend_view(PageCache& cache, View* view, uint64_t size_bytes,
                            uint64_t store_bytes) {
  OC_CHECK(view->cache == &cache);
  OC_CHECK(size_bytes <= view->reserved_bytes);
  const uint64_t before = view->mapped_bytes(),
                 after = base::round_up(size_bytes, base::kSystemPage);
  const uint64_t edge = view->offset + before;
  OC_CHECK(view->offset + after <= cache.page_count() * cache.page_bytes);
  if (cache.shared != nullptr && store_bytes > cache.store_bytes.load())
    return Error{EBUSY, "grow " + cache.uri + ": others share its pages as they were"};
  const Freeze freeze(cache);
  if (const uint64_t stored = cache.store_bytes.load(); store_bytes > stored)
    if (Status s = empty(cache, stored / cache.page_bytes, UINT64_MAX, "grow "); !s) return s;
  if (after > before) {
    const uint64_t first = edge / cache.page_bytes;
    // Of pages behind it only frames that can share may have some: those stay.
    const uint64_t shown_end =
        cache.frames->can_share() ? edge : base::round_up(view->offset + after, cache.page_bytes);
    const uint64_t end = (shown_end + cache.page_bytes - 1) / cache.page_bytes;
    if (Status s = empty(cache, first, end, "grow "); !s) return s;
  }
  if (store_bytes > cache.store_bytes.load())
    cache.store_bytes.store(store_bytes, std::memory_order_release);
  const uint64_t old_bytes = view->size_bytes.load();
  // First, so that a touch that finds the range inaccessible is ours, and waits for the thaw.
  view->size_bytes.store(std::max(size_bytes, old_bytes), std::memory_order_release);
  if (after <= before) return {};
  Status s = cache.frames->attach(
      {view->address + before, view->offset + before, after - before, view->is_writable, 0});
  if (s.ok()) return {};
  view->size_bytes.store(old_bytes, std::memory_order_release);
  return Error{s.code(), "grow " + cache.uri + ": " + s.message()};
}

// Other processes may write the file through the kernel before `place` is done here: who would
// still read what is in memory waits, too.
Status Freezer::hand_to_kernel(PageCache& cache, const std::function<Status()>& place) {
  if (cache.shared != nullptr) cache.shared->close_to_others();
  const Freeze freeze(cache);
  if (Status s = empty(cache, 0, UINT64_MAX, "hand back "); !s) return s;
  for (uint32_t i = 0; cache.writes != nullptr && i < cache.views_end.load(); ++i)
    if (const View* view = cache.views[i].load(); view != nullptr)
      if (const int result = cache.frames->hide(whole_of(*view)); result != 0)
        return base::system_error(result, "hand back " + cache.uri);
  if (Status s = place(); !s) return s;
  cache.is_handed_to_kernel.store(true, std::memory_order_release);
  return {};
}

}  // namespace outcore::paging
