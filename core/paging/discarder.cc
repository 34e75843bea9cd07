#include "core/paging/discarder.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/os/wait.h"
#include "core/paging/eviction.h"
#include "core/paging/failed_pages.h"

namespace outcore::paging {

using metrics::Counter;
using region::PageState;
using region::PageValue;

namespace {

bool is_takeable(const PageValue& seen) {
  return seen.state() == PageState::kResident && seen.pins() == 0 && !seen.has(PageValue::kWriting);
}

// From `first` on, the pages that leave together if nobody comes between.
uint64_t end_of_batch(Pager& pager, const PageCache& space, uint64_t first, uint64_t end) {
  const Shard& shard = pager.shard_of(space, first);
  end = std::min<uint64_t>(end, first + Shard::kVictimsMax);
  while (first < end && is_takeable(space.words[first].load()) &&
         &pager.shard_of(space, first) == &shard)
    ++first;
  return first;
}

int discard_stored(PageCache& space, uint64_t first, uint64_t end) {
  OC_CHECK(first < end);
  const uint64_t store_bytes = space.store_bytes.load();
  const uint64_t from = first * space.page_bytes, to = end * space.page_bytes;
  const uint64_t bytes = std::min(to, store_bytes) - std::min(from, store_bytes);
  const int result = space.store.load()->discard(from, bytes);
  OC_ASSERT(result <= 0);
  space.note_change(from, bytes);
  return result;
}

Error cannot_discard(const PageCache& space, uint64_t page, int code, const char* why) {
  return {code, "discard page " + std::to_string(page) + " of " + space.uri + ": " + why};
}

}  // namespace

// Those of [first, end) that make a batch, and where it ends. All of them, or none as far as the
// caller is concerned: false if it is none, somebody came between or the store refuses. Then they
// go one by one, those that are gone already once more.
bool Discarder::discard_batch(PageCache& space, uint64_t first, uint64_t end, uint64_t* batch_end) {
  OC_CHECK(first < end);
  *batch_end = end = end_of_batch(pager_, space, first, end);
  if (end <= first + 1) return false;
  Shard& shard = pager_.shard_of(space, first);
  const os::Locked turn(shard.turn);
  if (space.epoch.is_closed()) return false;
  Eviction eviction(pager_, shard, Caller::kThread);
  eviction.drain_inbox();
  uint64_t busy = 0;
  eviction.take_range(space, first, end, &busy);
  eviction.clean(Bytes::kHold);
  OC_CHECK(eviction.held() <= end - first);
  if (eviction.held() != end - first) {
    eviction.put_back_all(true);
    return false;
  }
  if (discard_stored(space, first, end) != 0) {  // a part of it may be gone
    eviction.put_back_all(false);
    return false;
  }
  if (eviction.free() != (end - first) * space.page_bytes) return false;
  space.counters.add(Counter::discarded, end - first);
  return true;
}

Status Discarder::discard(PageCache& space, uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(offset % space.page_bytes == 0);
  OC_ASSERT(offset + size_bytes <= space.page_count() * space.page_bytes);
  constexpr uint64_t kHoldNsMax = 200'000'000;  // a read or write of a region ends; a pin may not
  uint64_t pinned_ns = 0;
  const uint64_t end = (offset + size_bytes) / space.page_bytes;
  uint64_t page = offset / space.page_bytes;
  for (uint64_t alone_end = page; page < end;) {  // pages before alone_end go one by one
    if (page >= alone_end && discard_batch(space, page, end, &alone_end)) {
      page = alone_end;
      pinned_ns = 0;
      continue;
    }
    region::PageWord& word = space.words[page];
    PageValue seen = word.load();
    if (seen.pins() != 0) {
      if (pinned_ns == 0) pinned_ns = os::now_ns();
      if (os::now_ns() - pinned_ns < kHoldNsMax) {
        word.wait_while(seen, 10'000'000);
        continue;
      }
      return cannot_discard(space, page, EBUSY, "it is pinned; unpin it first");
    }
    if (seen.state() == PageState::kFailed) {
      if (retry_failed(space, page, page + 1)) continue;
      return cannot_discard(space, page, ENOMEM,
                            "its address cannot be mapped anew; raise vm.max_map_count");
    }
    if (seen.state() != PageState::kAbsent && !is_takeable(seen) &&
        seen.state() != PageState::kLeaving) {
      word.wait_while(seen, 10'000'000);
      continue;
    }
    Shard& shard = pager_.shard_of(space, page);
    space.epoch.wait_until_open();
    const os::Locked turn(shard.turn);
    if (space.epoch.is_closed()) continue;  // a cut is as it was at its moment
    Eviction eviction(pager_, shard, Caller::kThread);
    eviction.drain_inbox();
    bool is_absent = false;
    uint64_t busy = 0;
    seen = word.load();
    if (seen.state() == PageState::kAbsent) {
      is_absent = word.change(seen, seen.with(PageState::kFilling));
    } else {
      eviction.take_range(space, page, page + 1, &busy);
      eviction.clean(Bytes::kHold);
    }
    if (!is_absent && eviction.held() == 0) continue;  // it changed hands: look again
    const int result = discard_stored(space, page, page + 1);
    if (is_absent) word.update([](PageValue v) { return v.with(PageState::kAbsent); });
    if (result != 0) {
      eviction.put_back_all(false);
      return base::system_error(result,
                                "discard " + std::to_string(space.page_bytes) + " bytes at " +
                                    std::to_string(page * space.page_bytes) + " of " + space.uri,
                                is_absent ? "they may be zeros now" : "the bytes are kept");
    }
    if (!is_absent && eviction.free() == 0)
      return cannot_discard(space, page, EBUSY,
                            "its memory cannot be freed; is it locked (mlock)?");
    pinned_ns = 0;
    space.counters.add(Counter::discarded, 1);
    ++page;
  }
  return {};
}

}  // namespace outcore::paging
