#include "core/paging/reshaper.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/os/wait_limit.h"
#include "core/paging/failed_pages.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using region::PageState;
using region::PageValue;
using region::View;

namespace {

struct Gap {
  uint64_t first, end;
};

// The pages of which the parts leave something out, sorted, none twice.
std::vector<Gap> gaps_of(const PageCache& cache, const View& old, std::span<View* const> parts) {
  std::vector<Gap> gaps;
  const auto add = [&](uint64_t from, uint64_t to) {
    if (from >= to) return;
    const uint64_t bytes = cache.page_bytes, before = gaps.empty() ? 0 : gaps.back().end;
    gaps.push_back(
        {std::max(from / bytes, before), std::min((to + bytes - 1) / bytes, cache.page_count())});
  };
  uint64_t at = old.offset;
  for (const View* part : parts) {
    add(at, part->offset);
    at = part->offset + part->mapped_bytes();
  }
  add(at, old.offset + old.mapped_bytes());
  return gaps;
}

// Who waits there through a view that is replaced comes again, and lets go of it.
void wake(PageCache& cache, uint64_t first, uint64_t end) {
  for (uint64_t page = first; page < end; ++page)
    cache.words[page].update([](PageValue v) { return v; });
}

// For a scope, touches bring in none of the pages.
class Closing {
 public:
  Closing(PageCache& cache, uint64_t first, uint64_t end) : cache_(cache) {
    OC_CHECK(cache.closing_end.load() == 0);
    cache.closing_first.store(first);
    cache.closing_end.store(end, std::memory_order_release);
  }
  ~Closing() { cache_.closing_end.store(0); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  PageCache& cache_;
};

// Or it leaves: at rest it would stay so until others push it out.
bool is_in_memory(const PageValue& seen) {
  return seen.state() == PageState::kResident || seen.state() == PageState::kLeaving;
}

}  // namespace

Status Reshaper::swap_view(PageCache& cache, View* old, std::span<View* const> parts,
                           const std::function<void()>& between) {
  OC_CHECK(old->cache == &cache);
  OC_CHECK(!parts.empty());
  for (size_t i = 1; i < parts.size() && !cache.frames->can_share(); ++i)
    if (parts[i]->first_page() < parts[i - 1]->end_page())
      return Error{EBUSY, "divide a view of " + cache.uri + ": its pages of " +
                              base::format_bytes(cache.page_bytes) + " would be cut"};
  const std::vector<Gap> gaps = gaps_of(cache, *old, parts);
  const os::SignalBlock block;
  for (size_t i = 0; i < gaps.size(); ++i)
    if (Status s = evict_and_block(cache, gaps[i].first, gaps[i].end); !s) {
      for (size_t k = 0; k < i; ++k) unblock(cache, gaps[k].first, gaps[k].end);
      return s;
    }
  old->is_replaced.store(true, std::memory_order_release);
  for (const Gap& gap : gaps) wake(cache, gap.first, gap.end);
  const Status s = replace_view(cache, old, parts);
  old->is_replaced.store(s.ok(), std::memory_order_release);
  if (s.ok()) between();
  for (const Gap& gap : gaps) unblock(cache, gap.first, gap.end);
  return s;
}

// Nobody does anything through the twin, so nobody has to be waited for before the memory changes.
Status Reshaper::give_view(PageCache& cache, View** shown, View* twin,
                           base::FunctionRef<Status()> prepare, base::FunctionRef<Status()> place) {
  View* const old = *shown;
  OC_CHECK(old->cache == &cache && cache.shared == nullptr && cache.view_count > 1);
  OC_CHECK(old->offset % cache.page_bytes == 0 && old->reserved_bytes % cache.page_bytes == 0);
  OC_CHECK(twin->address == old->address && twin->reserved_bytes == old->reserved_bytes);
  const uint64_t first = old->first_page(), end = std::min(old->end_page(), cache.page_count());
  const os::SignalBlock block;
  if (Status s = evict_and_block(cache, first, end); !s) return s;
  Status s = prepare();
  if (s.ok()) {
    old->is_replaced.store(true, std::memory_order_release);
    wake(cache, first, end);
    s = replace_view(cache, old, {&twin, 1}, twin);
    old->is_replaced.store(s.ok(), std::memory_order_release);
    if (s.ok()) *shown = twin;
  }
  if (s.ok()) s = place();
  if (s.ok()) {
    region::AddressMap::instance().remove(twin, [&] { queue_.forget(*twin); });
    views_.forget(cache, twin);
    *shown = nullptr;
  } else if (*shown == twin) {
    twin->is_replaced.store(false, std::memory_order_release);
  }
  unblock(cache, first, end);
  return s;
}

// Whoever looks at the views of a page finds the old one, or the parts, or both: never neither.
// `gone`: the part that stays replaced. REQUIRES: old->is_replaced.
Status Reshaper::replace_view(PageCache& cache, View* old, std::span<View* const> parts,
                              View* gone) {
  OC_CHECK(old->is_replaced.load());
  if (Status s = insert_parts(cache, parts); !s) return s;
  // Nobody faults through the old one any more, nor through the parts until they know what they
  // show: a page that is there would be taken for one that was never shown, and so for clean.
  for (View* part : parts) part->is_replaced.store(true, std::memory_order_release);
  const auto forget = [&] { queue_.forget(*old); };
  if (Status s = region::AddressMap::instance().replace(old, parts, forget); !s) {
    for (View* part : parts) views_.forget(cache, part);
    return s;
  }
  if (cache.frames->can_share()) hand_on_shown(cache, *old, parts);
  for (View* part : parts) part->is_replaced.store(part == gone, std::memory_order_release);
  views_.wait_for_lookers(cache, old->first_page(), old->end_page());
  views_.forget(cache, old);
  return {};
}

// All of them, or none.
Status Reshaper::insert_parts(PageCache& cache, std::span<View* const> parts) {
  Status s;
  size_t put = 0;
  for (; put < parts.size(); ++put) {
    View* part = parts[put];
    part->cache = &cache;
    part->page_bytes = cache.page_bytes;
    if (cache.frames->can_share()) {
      const uint64_t pages =
          (part->offset + part->reserved_bytes) / cache.page_bytes + 1 - part->first_page();
      s = part->shown.allocate((pages + 63) / 64 + 1);
    }
    if (s.ok()) s = views_.insert(cache, part);
    if (!s.ok()) break;
  }
  for (size_t i = 0; i < put && !s.ok(); ++i) views_.forget(cache, parts[i]);
  return s;
}

// Frames that several views share note for each what it shows: what the old one shows is the parts'
// from now on. REQUIRES: nobody faults through any of them. Turns are held because who evicts
// forgets what was shown.
void Reshaper::hand_on_shown(PageCache& cache, const View& old, std::span<View* const> parts) {
  OC_CHECK(old.is_replaced.load());
  for (const View* part : parts) OC_CHECK(part->is_replaced.load());
  for (const auto& shard : pager_.shards) {
    const os::Locked turn(shard->turn);
    pager_.for_each_framed(cache, old.first_page(), old.end_page(), [&](uint64_t page) {
      if (&pager_.shard_of(cache, page) != shard.get() || !old.is_shown(page)) return;
      for (View* part : parts)
        if (page >= part->first_page() && page < part->end_page()) part->set_shown(page, true);
    });
  }
}

// Page by page, and none is left behind that somebody else may be waiting for.
Status Reshaper::evict_and_block(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(end <= cache.page_count());
  constexpr uint64_t kNsMax = 5'000'000'000, kPinnedNsMax = 200'000'000;
  const os::SignalBlock block;
  if (cache.shared != nullptr) {  // nobody of this process brings in any of them
    if (cache.shared->block(kNsMax)) return {};
    return Error{EBUSY, "change " + cache.uri + ": a page of it is being read for very long"};
  }
  os::WaitLimit limit(kNsMax);
  uint64_t pinned_ns = 0;  // since when the page is seen pinned; 0: it is not
  Status s = ranges_.evict(cache, first, end);
  const Closing closing(cache, first, end);  // now that most are out: who touches one asks often
  uint64_t held_end = first;
  for (; held_end < end && s.ok(); ++held_end) {
    const uint64_t page = held_end;
    pinned_ns = 0;
    while (s.ok() && !cache.claim(page)) {
      const PageValue seen = cache.words[page].load();
      const uint64_t now_ns = os::now_ns();
      pinned_ns = seen.pins() == 0 ? 0 : pinned_ns == 0 ? now_ns : pinned_ns;
      if (limit.is_over() || (pinned_ns != 0 && now_ns - pinned_ns > kPinnedNsMax))
        s = Error{EBUSY, "change " + cache.uri + ": page " + std::to_string(page) +
                             " is pinned, locked or touched all the time"};
      else if (seen.state() == PageState::kFailed)
        static_cast<void>(retry_failed(cache, page, page + 1));
      else if (is_in_memory(seen) && seen.pins() == 0)
        s = ranges_.evict(cache, page, page + 1);
      else
        cache.words[page].wait_while(seen, 10'000'000);
    }
    if (!s.ok()) break;
  }
  if (!s.ok()) unblock(cache, first, held_end);
  OC_CHECK(!s.ok() || held_end >= end);
  return s;
}

void Reshaper::unblock(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(end <= cache.page_count());
  if (cache.shared != nullptr) return cache.shared->unblock();
  for (uint64_t page = first; page < end; ++page) cache.abandon(page);
}

}  // namespace outcore::paging
