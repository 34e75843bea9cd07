// Calls on ranges of pages: evict, make cold, discard, try failed pages again. See engine.h.
#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/paging/engine.h"
#include "core/paging/eviction.h"

namespace outcore::paging {

using metrics::Counter;
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

// Evicts what is resident and not pinned. Pages in other hands are waited for, and tried again: but
// not for ever, as somebody else may touch them all the time.
Status Engine::evict(Space& space, uint64_t first, uint64_t end) {
  OC_ASSERT(end <= space.page_count());
  constexpr int kTriesMax = 4;
  int error = 0;
  for (const auto& shard : pager_.shards) {
    int tries = 0;
    for (uint64_t page = first; page < end;) {
      uint64_t busy = 0, next = page;
      space.epoch.wait_until_open();
      {
        const os::Locked turn(shard->turn);
        if (space.epoch.is_closed()) continue;  // what was written must wait for the cut
        Eviction eviction(pager_, *shard, Caller::kThread);
        eviction.hear();
        next = eviction.take_range(space, page, end, &busy);
        OC_CHECK(next > page);
        OC_CHECK(next <= end);
        eviction.clean(Bytes::kWriteBack);
        eviction.free();
        if (eviction.first_error() != 0) error = eviction.first_error();
      }
      bool is_again = false;
      for (uint64_t p = page; p < next && busy != 0 && error == 0 && tries < kTriesMax; ++p) {
        PageValue seen = space.words[p].load();
        // It may be back already from the hands that it was in when it was passed over.
        const bool is_there = seen.state() == PageState::kResident && seen.pins() == 0;
        if (!is_there && !is_in_other_hands(seen)) continue;
        if (&pager_.shard_of(space, p) != shard.get()) continue;
        is_again = true;
        while (is_in_other_hands(seen)) {
          space.words[p].wait_while(seen, 100'000'000);
          seen = space.words[p].load();
        }
      }
      tries = is_again ? tries + 1 : 0;
      if (!is_again) page = next;
    }
  }
  if (error != 0)
    return base::system_error(error,
                              "write back pages " + std::to_string(first) + " … " +
                                  std::to_string(end - 1) + " of " + space.uri,
                              "the bytes stay in memory while the region is mapped: make room or "
                              "repair the store, then flush");
  return {};
}

void Engine::make_cold(Space& space, uint64_t first, uint64_t end) {
  OC_ASSERT(end <= space.page_count());
  for (uint64_t page = first; page < end; ++page) {
    const PageValue seen = space.words[page].load();
    if (seen.state() != PageState::kResident || seen.pins() != 0) continue;
    Shard& shard = pager_.shard_of(space, page);
    const os::Locked turn(shard.turn);
    const PageValue now = space.words[page].load();
    if (now.state() != PageState::kResident || now.pins() != 0) continue;
    // After the look: a page that was rescued a moment ago is resident, and its news are here.
    Eviction(pager_, shard, Caller::kThread).hear();
    budget::FrameRecord& record = pager_.frames[now.frame()];
    OC_CHECK(record.page == page);
    OC_CHECK(record.space == space.id);
    if (record.is_in_policy == 0) continue;  // cold already, or parked
    shard.policy->removed(FrameId{now.frame()});
    record.is_in_policy = 0;
    shard.cold.push(pager_.frames, now.frame());
  }
}

bool Engine::retry_failed(Space& space, uint64_t first, uint64_t end) {
  OC_ASSERT(end <= space.page_count());
  bool is_forgotten = true;
  for (uint64_t page = first; page < end; ++page) {
    region::PageWord& word = space.words[page];
    PageValue seen = word.load();
    if (seen.state() != PageState::kFailed ||
        !word.change(seen, PageValue().with(PageState::kFilling)))
      continue;
    // The page is ours meanwhile, or bytes that were just filled would go with the poison.
    int result = 0;
    space.retries.fetch_add(1, std::memory_order_seq_cst);
    for (uint32_t i = 0; i < space.views_end.load(std::memory_order_acquire); ++i) {
      const region::View* view = space.views[i].load(std::memory_order_seq_cst);
      if (view == nullptr) continue;
      if (const os::Piece piece = view->piece_of(page); piece.size_bytes != 0)
        if (const int r = space.frames->forget_poison(piece); r != 0) result = r;
    }
    const uint32_t retries = space.retries.fetch_sub(1, std::memory_order_release);
    OC_CHECK(retries != 0);
    OC_ASSERT(word.glance() == PageState::kFilling);
    word.update([&](PageValue) { return result == 0 ? PageValue() : seen; });
    is_forgotten = is_forgotten && result == 0;
  }
  return is_forgotten;
}

Status Engine::retry_zeroed(Space& space, uint64_t first, uint64_t end) {
  // Before the look at what there is: a fill that comes meanwhile says it again.
  space.has_zeroed.store(false, std::memory_order_seq_cst);
  Status status;
  if (space.zeroed_pages.load(std::memory_order_seq_cst) != 0)
    pager_.for_each_framed(space, first, end, [&](uint64_t page) {
      const auto is_zeroed = [&] { return space.words[page].load().has(PageValue::kZeroed); };
      if (!is_zeroed()) return;
      Status s = evict(space, page, page + 1);
      if (s.ok() && is_zeroed())
        s = Error{EBUSY, "read page " + std::to_string(page) + " of " + space.uri +
                             " again: it is pinned; unpin it first"};
      if (!s.ok()) status = std::move(s);
    });
  if (space.zeroed_pages.load(std::memory_order_seq_cst) != 0) space.has_zeroed.store(true);
  return status;
}

// A page may have been shown before its state says so: its filler is about to finish.
Status Engine::end_zeroed(Space& space) {
  const os::SignalBlock block;
  while (space.zeroed_pages.load(std::memory_order_seq_cst) != 0) {
    if (Status s = retry_zeroed(space, 0, space.page_count()); !s) return s;
    os::yield();
  }
  return {};
}

namespace {

bool is_takeable(const PageValue& seen) {
  return seen.state() == PageState::kResident && seen.pins() == 0 && !seen.has(PageValue::kWriting);
}

// From `first` on, the pages that leave together if nobody comes between.
uint64_t end_of_batch(Pager& pager, const Space& space, uint64_t first, uint64_t end) {
  const Shard& shard = pager.shard_of(space, first);
  end = std::min<uint64_t>(end, first + Shard::kVictimsMax);
  while (first < end && is_takeable(space.words[first].load()) &&
         &pager.shard_of(space, first) == &shard)
    ++first;
  return first;
}

int discard_stored(Space& space, uint64_t first, uint64_t end) {
  OC_CHECK(first < end);
  const uint64_t store_bytes = space.store_bytes.load();
  const uint64_t from = first * space.page_bytes, to = end * space.page_bytes;
  const uint64_t bytes = std::min(to, store_bytes) - std::min(from, store_bytes);
  const int result = space.store.load()->discard(from, bytes);
  OC_ASSERT(result <= 0);
  space.note_change(from, bytes);
  return result;
}

Error cannot_discard(const Space& space, uint64_t page, int code, const char* why) {
  return {code, "discard page " + std::to_string(page) + " of " + space.uri + ": " + why};
}

}  // namespace

// Those of [first, end) that make a batch, and where it ends. All of them, or none as far as the
// caller is concerned: false if it is none, somebody came between or the store refuses. Then they
// go one by one, those that are gone already once more.
bool Engine::discard_batch(Space& space, uint64_t first, uint64_t end, uint64_t* batch_end) {
  OC_CHECK(first < end);
  *batch_end = end = end_of_batch(pager_, space, first, end);
  if (end <= first + 1) return false;
  Shard& shard = pager_.shard_of(space, first);
  const os::Locked turn(shard.turn);
  if (space.epoch.is_closed()) return false;
  Eviction eviction(pager_, shard, Caller::kThread);
  eviction.hear();
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

// While a page is ours (Filling or Dropping) nobody fills, rescues or writes it back, so the
// store's bytes can change under it, and threads that touch it all the time cannot keep it. Pages
// that are in memory go in batches; where somebody comes between, page by page.
Status Engine::discard(Space& space, uint64_t offset, uint64_t size_bytes) {
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
    eviction.hear();
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
