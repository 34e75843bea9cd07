// Views change their shape while the program goes on: what a program does to its mappings by
// munmap, mremap, mprotect and by system calls on the file. See engine.h, "doors".
#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"
#include "paging/engine.h"
#include "paging/freeze.h"
#include "region/address_map.h"

namespace outcore::paging {

using region::PageState;
using region::PageValue;
using region::View;

Status Engine::extend_view(Space& space, View* view, uint64_t size_bytes, uint64_t store_bytes) {
  const Freeze freeze(space);
  const uint64_t before = view->mapped_bytes(),
                 after = base::round_up(size_bytes, base::kSystemPage);
  const uint64_t edge = std::min(space.store_bytes.load(), view->offset + before);
  if (Status s = empty(space, edge / space.page_bytes, "grow "); !s) return s;
  if (store_bytes > space.store_bytes.load()) space.store_bytes.store(store_bytes);
  if (after <= before) return {};
  const uint64_t old_bytes = view->size_bytes.load();
  // First, so that a touch that finds the range inaccessible is ours, and waits for the thaw.
  view->size_bytes.store(size_bytes, std::memory_order_release);
  Status s = space.frames->attach(
      {view->address + before, view->offset + before, after - before, view->is_writable, 0});
  if (!s.ok()) view->size_bytes.store(old_bytes, std::memory_order_release);
  return s;
}

Status Engine::give_up(Space& space, const std::function<Status()>& place) {
  const Freeze freeze(space);
  if (Status s = empty(space, 0, "hand back "); !s) return s;
  if (Status s = place(); !s) return s;
  space.is_given_up.store(true, std::memory_order_release);
  return {};
}

Status Engine::swap_view(Space& space, View* old, std::span<View* const> parts,
                         const std::function<void()>& between) {
  // What the parts leave out, in whole pages and cut ones.
  struct Gap {
    uint64_t first, end;
  };
  std::vector<Gap> gaps;
  const auto add_gap = [&](uint64_t from, uint64_t to) {
    const uint64_t bytes = space.page_bytes;
    if (from < to)
      gaps.push_back({from / bytes, std::min((to + bytes - 1) / bytes, space.page_count())});
  };
  uint64_t at = old->offset;
  for (const View* part : parts) {
    add_gap(at, part->offset);
    at = part->offset + part->mapped_bytes();
  }
  add_gap(at, old->offset + old->mapped_bytes());
  for (size_t i = 1; i < parts.size() && !space.frames->can_share(); ++i)
    if (parts[i]->first_page() < parts[i - 1]->end_page())
      return Error{EBUSY, "divide a view of " + space.uri + ": its pages of " +
                              base::format_bytes(space.page_bytes) + " would be cut"};
  // Frames that several views share note for each what it shows: then all of them must be out.
  std::unique_ptr<Freeze> freeze;
  const os::SignalBlock block;
  if (space.frames->can_share()) {
    freeze = std::make_unique<Freeze>(space);
    if (Status s = empty(space, 0, "divide a view of "); !s) return s;
    gaps.clear();
  }
  for (size_t i = 0; i < gaps.size(); ++i) {
    if (i > 0 && gaps[i].first < gaps[i - 1].end) gaps[i].first = gaps[i - 1].end;
    if (Status s = hold_out(space, gaps[i].first, gaps[i].end); !s) {
      for (size_t k = 0; k < i; ++k) let_in(space, gaps[k].first, gaps[k].end);
      return s;
    }
  }
  Status s;
  size_t put = 0;
  for (; put < parts.size() && s.ok(); ++put) {
    View* part = parts[put];
    part->space = &space;
    part->page_bytes = space.page_bytes;
    if (space.frames->can_share())
      s = part->shown.allocate(
          ((part->offset + part->reserved_bytes) / space.page_bytes + 1 - part->first_page() + 63) /
              64 +
          1);
    if (s.ok()) s = put_view(space, part);
    if (!s.ok()) break;
  }
  old->is_replaced.store(s.ok(), std::memory_order_release);
  if (s.ok()) s = region::AddressMap::instance().replace(old, parts);
  if (s.ok())
    forget_view(space, old);
  else
    for (size_t i = 0; i < put; ++i) forget_view(space, parts[i]);
  if (!s.ok()) old->is_replaced.store(false, std::memory_order_release);
  if (s.ok()) between();
  for (const Gap& gap : gaps) let_in(space, gap.first, gap.end);
  return s;
}

// Page by page, and none is left behind that somebody else may be waiting for.
Status Engine::hold_out(Space& space, uint64_t first, uint64_t end) {
  constexpr uint64_t kNsMax = 5'000'000'000;
  const os::SignalBlock block;
  const uint64_t start_ns = os::now_ns();
  Status s = evict(space, first, end);
  uint64_t held_end = first;
  for (; held_end < end && s.ok(); ++held_end) {
    const uint64_t page = held_end;
    while (s.ok() && !space.claim(page)) {
      const PageValue seen = space.words[page].load();
      if (os::now_ns() - start_ns > kNsMax)
        s = Error{EBUSY, "change " + space.uri + ": page " + std::to_string(page) +
                             " is pinned, locked or touched all the time"};
      else if (seen.state() == PageState::kFailed)
        static_cast<void>(retry_failed(space, page, page + 1));
      else if (seen.state() == PageState::kResident && seen.pins() == 0)
        s = evict(space, page, page + 1);
      else
        space.words[page].wait_while(seen, 10'000'000);
    }
    if (!s.ok()) break;
  }
  if (!s.ok()) let_in(space, first, held_end);
  return s;
}

void Engine::let_in(Space& space, uint64_t first, uint64_t end) {
  for (uint64_t page = first; page < end; ++page) space.leave(page);
}

}  // namespace outcore::paging
