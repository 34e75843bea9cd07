#include "core/paging/prefetcher.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "core/paging/page_batch.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using metrics::Counter;
using region::AddressMap;
using region::PageState;
using region::View;

void Prefetcher::prefetch(View& view, uint64_t first, int64_t stride, uint64_t count,
                          bool is_readahead) {
  PageCache& cache = *view.cache;
  OC_CHECK(stride != 0);
  const budget::BouncePool& bounce = cache.shared != nullptr ? shared_.bounce() : pager_.bounce;
  const uint64_t at_once = std::max<uint64_t>(bounce.shape().chunk_bytes / cache.page_bytes, 1);
  while (count > 0) {
    const uint64_t n = std::min(count, at_once);
    view.users.fetch_add(1, std::memory_order_relaxed);
    PrefetchRequest request{&view, first, stride, n};
    request.is_readahead = is_readahead;
    if (!queue_.push(request)) {
      AddressMap::release(&view);
      cache.counters.add(Counter::prefetch_dropped, count);
      return;
    }
    first += static_cast<uint64_t>(stride) * n;
    count -= n;
  }
}

bool Prefetcher::run_one() {
  PrefetchRequest request;
  if (!queue_.pop(&request)) return false;
  View& view = *request.view;
  OC_CHECK(view.users.load() != 0);
  switch (request.task) {
    case PrefetchTask::kHint:
      if (view.cache->shared != nullptr)
        fill_shared(request);
      else
        fill_ahead(request);
      break;
    case PrefetchTask::kDemand:
      // Demands are repeated: those whose time is up must not each wait for memory in turn.
      // Nor may one wait for a page in other hands: a change of views, which holds pages, waits for
      // those behind it in the queue. Whoever demands waits for the page, and demands again.
      if (PageCache& cache = *view.cache;
          os::now_ns() <= request.until_ns && cache.claim(request.first))
        fill_demanded(cache, request);
      break;
    case PrefetchTask::kShareFrames:
      view.cache->share_frames();
      break;
  }
  AddressMap::release(&view);
  return true;
}

// Together with what is worth it; if that fails, alone: then a page beside it was to blame, or its
// own failure is told. REQUIRES: the page is Filling and ours.
void Prefetcher::fill_demanded(PageCache& cache, const PrefetchRequest& request) {
  const ClusterFiller::Cluster cluster = clusters_.fill_around(
      cache, *request.view, request.first, request.is_write, Caller::kThread, request.site);
  if (cluster.result == -EAGAIN && cache.claim(request.first))
    static_cast<void>(
        filler_.fill(cache, *request.view, request.first, request.is_write, Caller::kThread));
}

void Prefetcher::run() {
  while (!pager_.is_stopping.load(std::memory_order_acquire)) {
    const uint32_t changes = queue_.changes();
    if (!run_one()) queue_.wait_for_change(changes);
  }
}

// Pages of a buffer: those of them that nobody has and nobody brings in.
void Prefetcher::fill_shared(const PrefetchRequest& request) {
  View& view = *request.view;
  PageCache& cache = *view.cache;
  const uint64_t begin = view.first_page(), end = std::min(view.end_page(), cache.stored_pages());
  uint64_t dropped = 0;
  uint64_t left_out = SharedFiller::kNone;  // one page of the request
  const auto fill = [&](uint64_t first, uint64_t last) {
    for (uint64_t page = first; page < last;) {
      const uint64_t stop = std::min(last, page + SharedFiller::kPagesMax);
      if (!cache.shared->enter()) return;
      if (cache.is_frozen.load(std::memory_order_seq_cst)) return cache.shared->leave();
      for (uint64_t p = page; p < stop && request.is_readahead && left_out == SharedFiller::kNone;
           ++p)
        if (clusters_.is_wanted(cache, p)) left_out = p;
      uint32_t filled = 0;
      int result = 0;
      if (page != left_out) {
        const SharedFiller::Wanted wanted{page, page, stop, left_out, false, request.is_guess};
        result = shared_.fill(cache, view, wanted, &filled);
        if (filled != 0) clusters_.note_unasked(cache, page, stop, 1);
      }
      cache.shared->leave();
      if (result != 0) dropped += stop - page;
      page += std::max(filled, 1u);
    }
  };
  if (request.stride == 1 && request.first < end)
    fill(std::max(request.first, begin), std::min(request.first + request.count, end));
  else if (request.stride == -1 && request.first >= begin)
    fill(std::max(begin, request.first - std::min(request.first, request.count - 1)),
         std::min(request.first + 1, end));
  else
    for (uint64_t i = 0, page = request.first; i < request.count;
         ++i, page += static_cast<uint64_t>(request.stride))
      if (page >= begin && page < end) fill(page, page + 1);
  if (dropped != 0) cache.counters.add(Counter::prefetch_dropped, dropped);
}

void Prefetcher::fill_ahead(const PrefetchRequest& request) {
  View& view = *request.view;
  PageCache& cache = *view.cache;
  int64_t stride = request.stride;
  uint64_t count = request.count;
  OC_CHECK(stride != 0);
  OC_CHECK(count != 0);
  uint32_t gathered[512];
  PageBatch ahead(pager_, supply_, filler_, cache, view, Caller::kThread, Counter::prefetch_fills,
                  pager_.bounce.shape().chunk_bytes, gathered);
  if (request.is_guess) ahead.set_guessed();
  const uint64_t wait_ns = request.is_guess ? 0 : 1'000'000;
  bool is_one_left_out = false;
  const uint64_t begin = view.first_page(), end = view.end_page();
  uint64_t page = request.first, dropped = 0;
  if (stride < 0) {  // in the order of the store
    while (count > 0 && page + static_cast<uint64_t>(stride) * (count - 1) >= end) --count;
    page += static_cast<uint64_t>(stride) * (count - 1);
    stride = -stride;
  }
  const uint64_t lowest = page;
  // Several pages are claimed at once, before anything else: two threads that walk over the same
  // pages would otherwise take them in turns, and read all of them twice.
  constexpr uint64_t kClaimsMax = 32;
  uint64_t claimed = 0;  // from `page` on
  for (uint64_t i = 0; i < count; ++i, page += static_cast<uint64_t>(stride)) {
    if (page < begin) continue;
    if (claimed == 0) {
      if (page >= end || cache.is_frozen.load(std::memory_order_acquire)) break;
      for (uint64_t next = page;
           claimed < std::min(kClaimsMax, count - i) && next < end && cache.claim(next);
           next += static_cast<uint64_t>(stride))
        ++claimed;
    }
    if (claimed == 0) {
      const region::PageValue seen = cache.words[page].load();
      if (seen.state() == PageState::kResident && cache.frames->can_share() &&
          !view.is_shown(page)) {
        ahead.finish();  // whoever waits must hold no buffer
        static_cast<void>(remapper_.resolve_resident(cache, view, page, nullptr, false, seen));
      }
      ++dropped;
      continue;
    }
    --claimed;
    if (request.is_readahead && !is_one_left_out && clusters_.is_wanted(cache, page)) {
      is_one_left_out = true;
      cache.abandon(page);
      continue;
    }
    if (!PageBatch::can_add(pager_, cache, view, page)) {
      ahead.finish();
      if (filler_.fill(cache, view, page, false, Caller::kThread) == 0) continue;
    } else {
      uint32_t frame = budget::kNone;
      if (supply_.allocate_frame(cache, Caller::kThread, wait_ns, &frame) == 0) {
        ahead.add(page, frame);
        continue;
      }
      cache.abandon(page);
      dropped += count - i;
    }
    for (; claimed > 0; --claimed) cache.abandon(page += static_cast<uint64_t>(stride));
    break;
  }
  OC_CHECK(claimed == 0);
  ahead.finish();
  clusters_.note_unasked(cache, lowest, std::min(page, end), static_cast<uint64_t>(stride));
  if (dropped != 0) cache.counters.add(Counter::prefetch_dropped, dropped);
}

}  // namespace outcore::paging
