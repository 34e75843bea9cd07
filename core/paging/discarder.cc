#include "core/paging/discarder.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"
#include "core/paging/eviction.h"
#include "core/paging/failed_pages.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using metrics::Counter;
using region::PageState;
using region::PageValue;

namespace {

bool is_takeable(const PageValue& seen) {
  return seen.state() == PageState::kResident && seen.pins() == 0 && !seen.has(PageValue::kWriting);
}

// From `first` on, the pages that leave together if nobody comes between.
uint64_t end_of_batch(Pager& pager, const PageCache& cache, uint64_t first, uint64_t end) {
  const Shard& shard = pager.shard_of(cache, first);
  end = std::min<uint64_t>(end, first + Shard::kVictimsMax);
  while (first < end && is_takeable(cache.words[first].load()) &&
         &pager.shard_of(cache, first) == &shard)
    ++first;
  return first;
}

int discard_stored(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first < end);
  const uint64_t store_bytes = cache.store_bytes.load();
  const uint64_t from = first * cache.page_bytes, to = end * cache.page_bytes;
  const uint64_t bytes = std::min(to, store_bytes) - std::min(from, store_bytes);
  const int result = store::discard(*cache.store.load(), from, bytes);
  OC_ASSERT(result <= 0);
  cache.note_change(from, bytes);
  return result;
}

// From `first` on, absent pages that a shard has side by side, which are ours then (Filling): a
// call of the store for each would be slow. 0: the first one is not absent. REQUIRES: the turn of
// the first page's shard.
uint64_t claim_absent(Pager& pager, PageCache& cache, uint64_t first, uint64_t end) {
  constexpr uint64_t kPagesMax = 512, kBytesMax = 8 << 20;  // whoever touches one waits for all
  const Shard& shard = pager.shard_of(cache, first);
  end = std::min(end, first + std::clamp<uint64_t>(kBytesMax / cache.page_bytes, 1, kPagesMax));
  uint64_t page = first;
  for (; page < end && &pager.shard_of(cache, page) == &shard; ++page) {
    PageValue seen = cache.words[page].load();
    if (seen.state() != PageState::kAbsent) break;
    cache.touched.add(page);
    if (!cache.words[page].change(seen, seen.with(PageState::kFilling))) break;
  }
  return page - first;
}

Error cannot_discard(const PageCache& cache, uint64_t page, int code, const char* why) {
  return {code, "discard page " + std::to_string(page) + " of " + cache.uri + ": " + why};
}

Error refused_by_store(const PageCache& cache, uint64_t first, uint64_t end, int result,
                       bool is_absent) {
  return base::system_error(result,
                            "discard " + std::to_string((end - first) * cache.page_bytes) +
                                " bytes at " + std::to_string(first * cache.page_bytes) + " of " +
                                cache.uri,
                            is_absent ? "they may be zeros now" : "the bytes are kept");
}

}  // namespace

// Those of [first, end) that make a batch, and where it ends. All of them, or none as far as the
// caller is concerned: false if it is none, somebody came between or the store refuses. Then they
// go one by one, those that are gone already once more.
bool Discarder::discard_batch(PageCache& cache, uint64_t first, uint64_t end, uint64_t* batch_end) {
  OC_CHECK(first < end);
  *batch_end = end = end_of_batch(pager_, cache, first, end);
  if (end <= first + 1) return false;
  Shard& shard = pager_.shard_of(cache, first);
  const os::Locked turn(shard.turn);
  if (cache.epoch.is_closed()) return false;
  Eviction eviction(pager_, shard, Caller::kThread);
  eviction.drain_inbox();
  uint64_t busy = 0;
  eviction.add_range(cache, first, end, &busy);
  eviction.clean(Bytes::kBlock);
  OC_CHECK(eviction.blocked_count() <= end - first);
  if (eviction.blocked_count() != end - first) {
    eviction.put_back_all(true);
    return false;
  }
  if (discard_stored(cache, first, end) != 0) {  // a part of it may be gone
    eviction.put_back_all(false);
    return false;
  }
  if (eviction.free() != (end - first) * cache.page_bytes) return false;
  cache.note_discard(first, end);
  cache.counters.add(Counter::discarded, end - first);
  return true;
}

Status Discarder::discard(PageCache& cache, uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(offset % cache.page_bytes == 0);
  OC_ASSERT(offset + size_bytes <= cache.page_count() * cache.page_bytes);
  constexpr uint64_t kHoldNsMax = 200'000'000;  // a read or write of a region ends; a pin may not
  uint64_t pinned_ns = 0;
  const uint64_t end = (offset + size_bytes) / cache.page_bytes;
  uint64_t page = offset / cache.page_bytes;
  for (uint64_t alone_end = page; page < end;) {  // pages before alone_end go one by one
    if (page >= alone_end && discard_batch(cache, page, end, &alone_end)) {
      page = alone_end;
      pinned_ns = 0;
      continue;
    }
    region::PageWord& word = cache.words[page];
    PageValue seen = word.load();
    if (seen.pins() != 0) {
      if (pinned_ns == 0) pinned_ns = os::now_ns();
      if (os::now_ns() - pinned_ns < kHoldNsMax) {
        word.wait_while(seen, 10'000'000);
        continue;
      }
      return cannot_discard(cache, page, EBUSY, "it is pinned; unpin it first");
    }
    if (seen.state() == PageState::kFailed) {
      if (retry_failed(cache, page, page + 1)) continue;
      return cannot_discard(cache, page, ENOMEM,
                            "its address cannot be mapped anew; raise vm.max_map_count");
    }
    if (seen.state() != PageState::kAbsent && !is_takeable(seen) &&
        seen.state() != PageState::kLeaving) {
      word.wait_while(seen, 10'000'000);
      continue;
    }
    if (cache.is_frozen.load() && !cache.is_handed_to_kernel.load()) {  // who froze it waits for us
      os::yield();
      continue;
    }
    Shard& shard = pager_.shard_of(cache, page);
    cache.epoch.wait_until_open();
    const os::Locked turn(shard.turn);
    if (cache.epoch.is_closed()) continue;  // a cut is as it was at its moment
    Eviction eviction(pager_, shard, Caller::kThread);
    eviction.drain_inbox();
    uint64_t busy = 0;
    const uint64_t absent = claim_absent(pager_, cache, page, end);
    if (absent == 0) {
      eviction.add_range(cache, page, page + 1, &busy);
      eviction.clean(Bytes::kBlock);
      if (eviction.blocked_count() == 0) continue;  // it changed hands: look again
    }
    const uint64_t next = page + std::max<uint64_t>(absent, 1);
    const int result = discard_stored(cache, page, next);
    for (uint64_t i = 0; i < absent; ++i) cache.abandon(page + i);
    if (result != 0) {
      eviction.put_back_all(false);
      return refused_by_store(cache, page, next, result, absent != 0);
    }
    if (absent == 0 && eviction.free() == 0)
      return cannot_discard(cache, page, EBUSY,
                            "its memory cannot be freed; is it locked (mlock)?");
    pinned_ns = 0;
    cache.note_discard(page, next);
    cache.counters.add(Counter::discarded, next - page);
    page = next;
  }
  return {};
}

}  // namespace outcore::paging
