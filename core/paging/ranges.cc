#include "core/paging/ranges.h"

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"
#include "core/paging/eviction.h"
#include "core/paging/transfer_error.h"

namespace outcore::paging {

using region::PageState;
using region::PageValue;

namespace {

// Somebody is about to finish with it: a fill, a write-back, a batch on its way out.
bool is_in_other_hands(const PageValue& seen) {
  switch (seen.state()) {
    case PageState::kAbsent:
    case PageState::kFailed:
      return false;
    case PageState::kResident:
    case PageState::kLeaving:
      return seen.has(PageValue::kWriting);
    default:
      return true;
  }
}

}  // namespace

Status Ranges::evict(PageCache& cache, uint64_t first, uint64_t end) {
  OC_ASSERT(end <= cache.page_count());
  constexpr int kTriesMax = 4;
  int error = 0;
  for (const auto& shard : pager_.shards) {
    int tries = 0;
    for (uint64_t page = cache.touched.next(first, end); page < end;) {
      uint64_t busy = 0, next = page;
      cache.epoch.wait_until_open();
      {
        const os::Locked turn(shard->turn);
        if (cache.epoch.is_closed()) continue;  // what was written must wait for the cut
        Eviction eviction(pager_, *shard, Caller::kThread);
        eviction.drain_inbox();
        next = eviction.add_range(cache, page, end, &busy);
        OC_CHECK(next > page);
        OC_CHECK(next <= end);
        eviction.clean(Bytes::kWriteBack);
        eviction.free();
        if (eviction.first_error() != 0) error = eviction.first_error();
      }
      bool is_again = false;
      const auto next_touched = [&](uint64_t p) { return cache.touched.next(p, next); };
      for (uint64_t p = next_touched(page);
           p < next && busy != 0 && error == 0 && tries < kTriesMax; p = next_touched(p + 1)) {
        PageValue seen = cache.words[p].load();
        // It may be back already from the hands that it was in when it was passed over.
        const bool is_there = seen.state() == PageState::kResident && seen.pins() == 0;
        if (!is_there && !is_in_other_hands(seen)) continue;
        if (&pager_.shard_of(cache, p) != shard.get()) continue;
        is_again = true;
        while (is_in_other_hands(seen)) {
          cache.words[p].wait_while(seen, 100'000'000);
          seen = cache.words[p].load();
        }
      }
      tries = is_again ? tries + 1 : 0;
      if (!is_again) page = next;
    }
  }
  if (error != 0)
    return transfer_error(cache, error,
                          "write back pages " + std::to_string(first) + " … " +
                              std::to_string(end - 1) + " of " + cache.uri,
                          "the bytes stay in memory while the region is mapped: make room or "
                          "repair the store, then flush");
  return {};
}

void Ranges::make_cold(PageCache& cache, uint64_t first, uint64_t end) {
  OC_ASSERT(end <= cache.page_count());
  for (uint64_t page = first; (page = cache.touched.next(page, end)) < end; ++page) {
    const PageValue seen = cache.words[page].load();
    if (seen.state() != PageState::kResident || seen.pins() != 0) continue;
    Shard& shard = pager_.shard_of(cache, page);
    const os::Locked turn(shard.turn);
    const PageValue now = cache.words[page].load();
    if (now.state() != PageState::kResident || now.pins() != 0) continue;
    // After the look: a page that was rescued a moment ago is resident, and in the inbox.
    Eviction(pager_, shard, Caller::kThread).drain_inbox();
    budget::FrameRecord& record = pager_.frames[now.frame()];
    OC_CHECK(record.page == page);
    OC_CHECK(record.cache == cache.id);
    if (record.is_in_policy == 0) continue;  // cold already, or parked
    shard.policy->removed(FrameId{now.frame()});
    record.is_in_policy = 0;
    shard.cold.push(pager_.frames, now.frame());
  }
}

Status Ranges::retry_zeroed(PageCache& cache, uint64_t first, uint64_t end) {
  // Before the look at what there is: a fill that comes meanwhile says it again.
  cache.has_zeroed.store(false, std::memory_order_seq_cst);
  Status status;
  if (cache.zeroed_pages.load(std::memory_order_seq_cst) != 0)
    pager_.for_each_framed(cache, first, end, [&](uint64_t page) {
      const auto is_zeroed = [&] { return cache.words[page].load().has(PageValue::kZeroed); };
      if (!is_zeroed()) return;
      Status s = evict(cache, page, page + 1);
      if (s.ok() && is_zeroed())
        s = Error{EBUSY, "read page " + std::to_string(page) + " of " + cache.uri +
                             " again: it is pinned; unpin it first"};
      if (!s.ok()) status = std::move(s);
    });
  if (cache.zeroed_pages.load(std::memory_order_seq_cst) != 0) cache.has_zeroed.store(true);
  return status;
}

Status Ranges::end_zeroed(PageCache& cache) {
  const os::SignalBlock block;
  while (cache.zeroed_pages.load(std::memory_order_seq_cst) != 0) {
    if (Status s = retry_zeroed(cache, 0, cache.page_count()); !s) return s;
    os::yield();
  }
  return {};
}

}  // namespace outcore::paging
