#include "core/paging/cluster_filler.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/paging/page_batch.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using metrics::Counter;
using prefetch::FetchTuner;
using region::PageState;
using region::View;

namespace {

constexpr uint64_t kExtentBytes = 2 << 20;

bool is_page_absent(const void* of, uint64_t page) {
  return static_cast<const PageCache*>(of)->seems_absent(page);
}

}  // namespace

const budget::BouncePool& ClusterFiller::bounce_of(const PageCache& cache) const {
  return cache.shared != nullptr ? shared_.bounce() : pager_.bounce;
}

bool ClusterFiller::may_fill(const PageCache& cache, const View& view, uint64_t page) const {
  if (cache.shared != nullptr) return shared_.bounce().has_chunk();
  return pager_.bounce.has_chunk() && PageBatch::can_add(pager_, cache, view, page);
}

// What nobody asked for is not to come in: the user has said so.
bool ClusterFiller::is_off(const PageCache& cache, const View& view) const {
  return !pager_.options.fetches_clusters || pager_.options.readahead_bytes == 0 ||
         view.advice.load(std::memory_order_relaxed) == Advice::kRandom ||
         cache.page_bytes > bounce_of(cache).shape().chunk_bytes / 2;
}

int ClusterFiller::fill_alone(PageCache& cache, View& view, uint64_t page, bool is_write,
                              Caller caller, bool was_absent) {
  if (cache.shared == nullptr) return filler_.fill(cache, view, page, is_write, caller);
  uint32_t filled = 0;
  const SharedFiller::Wanted wanted{page, page,  page + 1,  FetchTuner::kNone,
                                    true, false, was_absent};
  return shared_.fill(cache, view, wanted, &filled);
}

// Pages without stored bytes are zeros: they cost memory and no transfer.
bool ClusterFiller::is_stored(const PageCache& cache, uint64_t page) const {
  const uint64_t start = page * cache.page_bytes;
  const uint64_t stored = cache.stored_bytes(start, cache.page_bytes);
  return stored != 0 && !cache.is_hole(start, stored);
}

FetchTuner::Miss ClusterFiller::locate(const PageCache& cache, uint64_t page, uint64_t site) {
  FetchTuner::Miss miss;
  miss.cache_id = cache.fetches.id;
  miss.page = page;
  miss.extent = page * cache.page_bytes / kExtentBytes;
  miss.site = site;
  return miss;
}

// Whether there is room for guesses.
void ClusterFiller::look_for_room(const PageCache& cache, FetchTuner::Miss* miss) const {
  SharedFiller::Room room = shared_.room(cache);
  const uint64_t chunk_bytes = bounce_of(cache).shape().chunk_bytes;
  uint64_t reserve = 0;
  if (cache.shared == nullptr) {
    room.limit_bytes = pager_.budget.limit();
    room.used_bytes = pager_.budget.used();
    room.resident_bytes = cache.resident_bytes.load(std::memory_order_relaxed);
    room.kept_bytes = pager_.watermarks().low;
    reserve = room.limit_bytes / 16 + chunk_bytes;
  } else {
    reserve = room.limit_bytes / 64 + chunk_bytes;  // all that others need counts as used there
  }
  const uint64_t stored = cache.store_bytes.load(std::memory_order_relaxed);
  const uint64_t missing = stored - std::min(stored, room.resident_bytes);
  miss->room_pages = room.limit_bytes / cache.page_bytes;
  miss->is_all_fitting = room.used_bytes + missing + reserve <= room.kept_bytes;
  miss->is_full = room.used_bytes + reserve > room.kept_bytes;
  miss->is_roomy = miss->is_all_fitting || room.used_bytes + reserve <= room.kept_bytes / 2;
}

void ClusterFiller::describe(const PageCache& cache, const View& view,
                             FetchTuner::Miss* miss) const {
  OC_ASSERT(miss->page < cache.page_count());
  const uint64_t chunk_pages = bounce_of(cache).shape().chunk_bytes / cache.page_bytes;
  if (may_fill(cache, view, miss->page) && is_stored(cache, miss->page))
    miss->level_max =
        std::min(static_cast<uint32_t>(std::bit_width(chunk_pages)) - 1, FetchTuner::kLevelMax);
  miss->pages_begin = view.first_page();
  miss->pages_end = std::max(std::min(view.end_page(), cache.stored_pages()), miss->page + 1);
  miss->absent = {&cache, is_page_absent};
}

uint64_t ClusterFiller::room_pages(const PageCache& cache) const {
  const uint64_t limit_bytes =
      cache.shared != nullptr ? shared_.limit_bytes(cache) : pager_.budget.limit();
  return limit_bytes / cache.page_bytes;
}

void ClusterFiller::note_miss(PageCache& cache, uint64_t page) {
  pager_.tuner.note_miss(cache.fetches, page, room_pages(cache));
}

bool ClusterFiller::is_wanted(const PageCache& cache, uint64_t page) const {
  return pager_.tuner.is_watched(cache.fetches.id, page) &&
         pager_.tuner.is_wanted(cache.fetches.id, page, room_pages(cache)) &&
         (cache.shared == nullptr || is_page_absent(&cache, page));
}

void ClusterFiller::note_unasked(PageCache& cache, uint64_t first, uint64_t end, uint64_t stride,
                                 uint64_t asked) {
  OC_CHECK(stride != 0);
  for (uint64_t page = first; page < end; page += stride)
    if (page != asked && pager_.tuner.is_watched(cache.fetches.id, page) &&
        !is_page_absent(&cache, page))
      pager_.tuner.note_unasked(cache.fetches, page, room_pages(cache));
}

bool ClusterFiller::wants_more(PageCache& cache, const View& view, uint64_t page, uint64_t site) {
  if (is_off(cache, view)) return false;
  FetchTuner::Miss miss = locate(cache, page, site);
  look_for_room(cache, &miss);
  describe(cache, view, &miss);
  if (pager_.tuner.level_of(cache.fetches, miss) != 0) return true;
  note_miss(cache, page);
  return false;
}

int ClusterFiller::fill_along(PageCache& cache, View& view, uint64_t page, int64_t stride,
                              uint32_t count, bool is_write, Caller caller) {
  OC_CHECK(stride == 1 || stride == -1);
  OC_CHECK(count > 1);
  note_miss(cache, page);
  uint64_t first = page, end = page + 1, left_out = FetchTuner::kNone;
  for (uint32_t more = std::min(count, kPagesMax) - 1; more > 0; --more) {
    const uint64_t next = stride > 0 ? end : first - 1;
    if (next < view.first_page() || next >= view.end_page()) break;
    // Of a buffer's pages the filler looks at all of them at once.
    if (cache.shared == nullptr && !is_page_absent(&cache, next)) break;
    (stride > 0 ? end : first) += static_cast<uint64_t>(stride);
    if (left_out == FetchTuner::kNone && is_wanted(cache, next)) left_out = next;
  }
  uint32_t filled = 0;
  const int result =
      fill_wanted(cache, view, {page, first, end, left_out, false, is_write}, caller, &filled);
  note_unasked(cache, first, end, 1, page);
  return result;
}

ClusterFiller::Cluster ClusterFiller::fill_around(PageCache& cache, View& view, uint64_t page,
                                                  bool is_write, Caller caller, uint64_t site) {
  if (is_off(cache, view))
    return {page, page + 1, fill_alone(cache, view, page, is_write, caller, true)};
  FetchTuner::Miss miss = locate(cache, page, site);
  look_for_room(cache, &miss);
  if (!miss.is_roomy && pager_.tuner.is_decided(miss)) {
    note_miss(cache, page);
    return {page, page + 1, fill_alone(cache, view, page, is_write, caller, true)};
  }
  const uint64_t start_ns = os::now_ns();
  describe(cache, view, &miss);
  const FetchTuner::Choice choice = pager_.tuner.choose(cache.fetches, miss);
  const uint64_t pages = choice.pages();
  Cluster cluster{choice.first(page), 0, 0};
  cluster.end = std::min(cluster.first + pages, miss.pages_end);
  cluster.first = std::max(cluster.first, view.first_page());
  OC_CHECK(cluster.first <= page && page < cluster.end);
  // Where all fits, and so much comes in already: twice as much, half of it by a prefetch thread.
  if (miss.is_all_fitting && !choice.is_ahead && choice.level == miss.level_max &&
      choice.level != 0)
    hint(view, (page & ~(pages - 1)) ^ pages, pages, miss.pages_end);
  uint32_t filled = 0;
  if (choice.level == 0) {
    cluster.result = fill_alone(cache, view, page, is_write, caller, true);
    filled = cluster.result == 0 ? 1 : 0;
  } else {
    cluster.result = fill_wanted(
        cache, view,
        {page, cluster.first, cluster.end, choice.left_out, !choice.is_proven, is_write}, caller,
        &filled);
  }
  if (filled != 0 && cluster.result == 0) cache.fetches.cost.note(filled, os::now_ns() - start_ns);
  return cluster;
}

// Of a cluster beside that of a miss, for a prefetch thread that has nothing else to do.
void ClusterFiller::hint(View& view, uint64_t first, uint64_t count, uint64_t end) {
  if (first < view.first_page() || first >= end || queue_.hints_waiting() != 0) return;
  count = std::min(count, end - first);
  const PageCache& cache = *view.cache;
  for (const uint64_t page : {first, first + count / 2, first + count - 1})
    if (!is_page_absent(&cache, page)) return;  // it has been there already
  OC_ASSERT(count != 0);
  PrefetchRequest request{&view, first, 1, count};
  request.is_readahead = request.is_guess = true;
  view.users.fetch_add(1, std::memory_order_relaxed);
  if (!queue_.push(request)) region::AddressMap::release(&view);
}

// In one transfer. *filled: how many pages that was meant to be.
int ClusterFiller::fill_wanted(PageCache& cache, View& view, const Wanted& wanted, Caller caller,
                               uint32_t* filled) {
  if (cache.shared != nullptr)
    return shared_.fill(
        cache, view,
        {wanted.page, wanted.first, wanted.end, wanted.left_out, true, wanted.is_guess}, filled);
  OC_CHECK(cache.words[wanted.page].glance() == PageState::kFilling);
  OC_CHECK(wanted.first <= wanted.page && wanted.page < wanted.end);
  OC_CHECK(wanted.end - wanted.first <= kPagesMax);
  Claimed claimed;
  if (const int result = claim(cache, view, wanted, caller, &claimed); result != 0) return result;
  *filled = claimed.count;
  bring_in(cache, view, wanted, caller, &claimed);
  // Otherwise it is absent again because the transfer failed, or its first write is a fault.
  const bool may_be_touched = !wanted.is_written || cache.page_bytes == base::kSystemPage ||
                              !cache.frames->has_write_faults();
  const bool is_there = cache.words[wanted.page].glance() == PageState::kResident;
  return is_there && may_be_touched ? 0 : -EAGAIN;
}

// A frame for each page. Pages may be evicted here, which needs much stack, and during which no
// buffer is to be held: so the transfer is a function of its own.
[[gnu::noinline]] int ClusterFiller::claim(PageCache& cache, const View& view, const Wanted& wanted,
                                           Caller caller, Claimed* claimed) {
  uint32_t asked = 0;
  if (const int result = supply_.allocate_frame(
          cache, caller, std::max<uint64_t>(pager_.options.wait_ns_max, 1), &asked);
      result != 0) {
    cache.abandon(wanted.page);
    return result;
  }
  bool has_room = true;
  for (uint64_t page = wanted.first; page < wanted.end; ++page) {
    uint32_t frame = asked;
    if (page != wanted.page) {
      if (!has_room || page == wanted.left_out || !PageBatch::can_add(pager_, cache, view, page) ||
          !cache.claim(page))
        continue;
      has_room = supply_.allocate_frame(cache, caller, 0, &frame) == 0;
      if (!has_room) {
        cache.abandon(page);
        continue;
      }
    }
    const uint64_t at = page - wanted.first;
    claimed->page[at / 64] |= uint64_t{1} << (at % 64);
    claimed->frame[claimed->count++] = frame;
  }
  OC_CHECK(claimed->count != 0 && claimed->count <= kPagesMax);
  return 0;
}

[[gnu::noinline]] void ClusterFiller::bring_in(PageCache& cache, View& view, const Wanted& wanted,
                                               Caller caller, Claimed* claimed) {
  // The batch gathers frames where they are: it never has more than were allocated there.
  PageBatch batch(pager_, supply_, filler_, cache, view, caller, Counter::prefetch_fills,
                  pager_.bounce.shape().chunk_bytes, claimed->frame);
  if (wanted.is_guess) batch.set_guessed();
  batch.set_asked(wanted.page, wanted.is_written && cache.page_bytes == base::kSystemPage);
  uint32_t next = 0;
  for (uint64_t page = wanted.first; page < wanted.end; ++page) {
    const uint64_t at = page - wanted.first;
    if ((claimed->page[at / 64] >> (at % 64) & 1) == 0) continue;
    OC_ASSERT(next < claimed->count);
    batch.add(page, claimed->frame[next++]);
  }
  OC_CHECK(next == claimed->count);
  batch.finish();
}

}  // namespace outcore::paging
