#include "core/paging/prefetcher.h"

#include <algorithm>
#include <cerrno>
#include <exception>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/buffer_frames.h"
#include "core/os/wait.h"
#include "core/paging/call_wait.h"
#include "core/paging/page_batch.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using metrics::Counter;
using region::AddressMap;
using region::PageState;
using region::View;

namespace {

// For a call: this part of the budget at once, and not more than so much.
constexpr uint64_t kCallShare = 16;
constexpr uint64_t kCallBytesMax = 2 << 20;
constexpr uint32_t kListMax = PageBatch::kRunsMax;  // requests that are carried out together

}  // namespace

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

// How many pages are brought in at once for a call: what s3-fifo keeps of pages that were asked for
// once is a tenth of the budget.
uint64_t Prefetcher::call_pages(const PageCache& cache) const {
  const bool is_shared = cache.shared != nullptr;
  const budget::BouncePool& bounce = is_shared ? shared_.bounce() : pager_.bounce;
  if (cache.page_bytes > bounce.shape().chunk_bytes) return 1;  // each is a transfer of its own
  const uint64_t limit = is_shared ? SharedFiller::limit_bytes(cache) : pager_.budget.limit();
  return std::min(limit / kCallShare, kCallBytesMax) / cache.page_bytes;
}

uint64_t Prefetcher::bring_in_for_call(View& view, uint64_t first, uint64_t end) {
  PageCache& cache = *view.cache;
  OC_CHECK(first < end);
  OC_CHECK(end <= cache.page_count());
  const uint64_t most = call_pages(cache);
  if (most < 2) return end;
  const uint64_t stop = std::min(end, first + most);
  view.users.fetch_add(1, std::memory_order_relaxed);
  uint64_t page = first;
  while (page < stop && !view.is_replaced.load(std::memory_order_acquire))
    page += fill_for_call(view, page, stop - page);
  AddressMap::release(&view);
  return stop;
}

// Pages that are alike, absent or not, from `first` on: at most a chunk of them. Gives their
// number. A page alone is left to whoever asks for it.
uint64_t Prefetcher::fill_for_call(View& view, uint64_t first, uint64_t count) {
  PageCache& cache = *view.cache;
  OC_CHECK(count != 0);
  const bool is_shared = cache.shared != nullptr;
  const budget::BouncePool& bounce = is_shared ? shared_.bounce() : pager_.bounce;
  count = std::min(count, bounce.shape().chunk_bytes / cache.page_bytes);
  unsigned char present[SharedFiller::kPagesMax] = {};
  if (is_shared) {
    count = std::min<uint64_t>(count, SharedFiller::kPagesMax);
    const os::Piece piece = view.pieces_of(first, first + count);
    if (os::look_up_presence(piece.address, piece.size_bytes, present) != 0) return count;
  }
  const auto is_absent = [&](uint64_t page) {
    if (is_shared) return (present[page - first] & 1) == 0;
    return cache.words[page].load().state() == PageState::kAbsent;
  };
  const bool is_wanted = is_absent(first);
  uint64_t n = 1;
  while (n < count && is_absent(first + n) == is_wanted) ++n;
  if (!is_wanted || n == 1) return n;
  CallWait wait(cache.counters);
  wait.begin();
  const PrefetchRequest request{&view, first, 1, n};
  is_shared ? fill_shared(request) : fill_ahead({&request, 1}, Counter::fills);
  uint64_t filled = 0;
  for (uint64_t page = first; page < first + n && !is_shared; ++page) filled += !is_absent(page);
  wait.set_pages(is_shared ? n : filled);
  return n;
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
        fill_list(request);
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
      try {
        view.cache->share_frames();
      } catch (const std::exception&) {  // the frames that it has do as well
      }
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

// How many pages of a list travel together. Each has a buffer: a list takes a quarter of its kind
// at most. Where the store reads one by one, nothing would be gained, and others would wait.
uint32_t Prefetcher::list_max(const PageCache& cache) const {
  const budget::BouncePool::Shape& shape = pager_.bounce.shape();
  if (!cache.traits.has_many_in_flight || cache.page_bytes > shape.chunk_bytes) return 1;
  const bool is_small = cache.page_bytes <= base::kSystemPage;
  uint32_t most = std::min(kListMax, (is_small ? shape.small_count : shape.chunk_count) / 4);
  if (cache.read_gate.limit() != 0) most = std::min(most, cache.read_gate.limit());
  return std::max(most, 1u);
}

// The request, and those like it that wait behind it: each page of a list of single pages is a
// transfer of its own, and a device carries out many at a time.
void Prefetcher::fill_list(const PrefetchRequest& request) {
  PrefetchRequest list[kListMax] = {request};
  uint32_t count = 1;
  if (const uint32_t most = list_max(*request.view->cache); most > 1 && request.is_single())
    count += queue_.pop_alike(request, std::span(list).subspan(1, most - 1));
  OC_CHECK(count <= kListMax);
  const std::span<const PrefetchRequest> requests{list, count};
  fill_ahead(requests);
  for (const PrefetchRequest& behind : requests.subspan(1)) AddressMap::release(behind.view);
}

// REQUIRES: of one view; several only if each is a single page.
void Prefetcher::fill_ahead(std::span<const PrefetchRequest> requests, Counter counter) {
  OC_CHECK(!requests.empty());
  View& view = *requests[0].view;
  PageCache& cache = *view.cache;
  // Runs grow into a chunk; those of a list are a page each, and there are more small buffers.
  const uint64_t run_bytes =
      requests.size() > 1 ? cache.page_bytes : pager_.bounce.shape().chunk_bytes;
  uint32_t gathered[512];
  PageBatch ahead(pager_, supply_, filler_, cache, view, Caller::kThread, counter, run_bytes,
                  gathered);
  if (requests[0].is_guess) ahead.set_guessed();
  Walk walk[kListMax];
  uint64_t dropped = 0;
  bool has_room = true;
  for (size_t i = 0; i < requests.size(); ++i) {
    OC_ASSERT(requests[i].view == &view && (requests.size() == 1 || requests[i].is_single()));
    if (has_room)
      has_room = gather(requests[i], &ahead, &walk[i], &dropped);
    else
      dropped += requests[i].count;
  }
  ahead.finish();
  for (size_t i = 0; i < requests.size(); ++i)
    clusters_.note_unasked(cache, walk[i].first, walk[i].end, walk[i].stride);
  if (dropped != 0) cache.counters.add(Counter::prefetch_dropped, dropped);
}

// The pages of a request, upwards: in the order of the store.
Prefetcher::Walk Prefetcher::walk_of(const PrefetchRequest& request) {
  OC_CHECK(request.stride != 0);
  OC_CHECK(request.count != 0);
  if (request.stride > 0)
    return {request.first, request.first, static_cast<uint64_t>(request.stride), request.count};
  // Those beyond the end of the view, at which a reader came in, are none.
  uint64_t count = request.count;
  const auto page_of = [&](uint64_t i) {
    return request.first + static_cast<uint64_t>(request.stride) * i;
  };
  while (count > 0 && page_of(count - 1) >= request.view->end_page()) --count;
  const uint64_t first = count == 0 ? request.view->end_page() : page_of(count - 1);
  return {first, first, static_cast<uint64_t>(-request.stride), count};
}

// Several pages are claimed at once, before anything else: two threads that walk over the same
// pages would otherwise take them in turns, and read all of them twice.
uint64_t Prefetcher::claim_some(PageCache& cache, uint64_t page, uint64_t stride, uint64_t count,
                                uint64_t end) {
  constexpr uint64_t kClaimsMax = 32;
  uint64_t claimed = 0;
  for (; claimed < std::min(kClaimsMax, count) && page < end && cache.claim(page); page += stride)
    ++claimed;
  return claimed;
}

bool Prefetcher::gather(const PrefetchRequest& request, PageBatch* ahead, Walk* walk,
                        uint64_t* dropped) {
  View& view = *request.view;
  PageCache& cache = *view.cache;
  *walk = walk_of(request);
  const uint64_t begin = view.first_page(), end = view.end_page();
  bool is_one_left_out = false, has_room = true;
  uint64_t claimed = 0;  // from walk->end on
  uint64_t& page = walk->end;
  for (uint64_t i = 0; i < walk->count; ++i, page += walk->stride) {
    if (page < begin) continue;
    if (claimed == 0) {
      if (page >= end || cache.is_frozen.load(std::memory_order_acquire)) break;
      claimed = claim_some(cache, page, walk->stride, walk->count - i, end);
    }
    if (claimed == 0) {
      show_resident(cache, view, page, ahead);
      ++*dropped;
      continue;
    }
    --claimed;
    if (request.is_readahead && !is_one_left_out && clusters_.is_wanted(cache, page)) {
      is_one_left_out = true;
      cache.abandon(page);
      continue;
    }
    const Begun begun = begin_page(cache, view, page, request.is_guess, ahead);
    if (begun == Begun::kYes) continue;
    has_room = begun != Begun::kNoRoom;
    if (!has_room) *dropped += walk->count - i;
    for (; claimed > 0; --claimed) cache.abandon(page += walk->stride);
    break;
  }
  OC_CHECK(claimed == 0);
  walk->end = std::min(walk->end, end);
  return has_room;
}

// A page that is there may yet have to be shown in this view.
void Prefetcher::show_resident(PageCache& cache, View& view, uint64_t page, PageBatch* ahead) {
  const region::PageValue seen = cache.words[page].load();
  if (seen.state() != PageState::kResident || !cache.frames->can_share() || view.is_shown(page))
    return;
  ahead->finish();  // whoever waits must hold no buffer
  static_cast<void>(remapper_.resolve_resident(cache, view, page, nullptr, false, seen));
}

// Gives the page a frame, and adds it to the batch; otherwise it is absent again, or has Failed.
// REQUIRES: the page is Filling and ours.
Prefetcher::Begun Prefetcher::begin_page(PageCache& cache, View& view, uint64_t page, bool is_guess,
                                         PageBatch* ahead) {
  if (!PageBatch::can_add(pager_, cache, view, page)) {
    ahead->finish();
    const int result = filler_.fill(cache, view, page, false, Caller::kThread);
    return result == 0 ? Begun::kYes : Begun::kFailed;
  }
  uint32_t frame = budget::kNone;
  if (supply_.allocate_frame(cache, Caller::kThread, is_guess ? 0 : 1'000'000, &frame) != 0) {
    cache.abandon(page);
    return Begun::kNoRoom;
  }
  ahead->add(page, frame);
  return Begun::kYes;
}

}  // namespace outcore::paging
