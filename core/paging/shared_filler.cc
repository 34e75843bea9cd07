#include "core/paging/shared_filler.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/buffer/fills.h"
#include "core/os/buffer_frames.h"
#include "core/os/wait.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using buffer::Claims;
using metrics::Counter;
using region::View;

namespace {

// Whoever brings the page in is about to be done. A claim is a hint: after this long we do not
// believe it any more.
constexpr uint64_t kClaimNs = 20'000'000;
// So many pages may be missing between two of a run: to read them, too, costs less than a transfer
// of its own. Of all that is read they are at most one in so many: members that read a file side by
// side meet each other's pages everywhere.
constexpr uint64_t kGapPages = 1, kPagesAGap = 64;

}  // namespace

SharedFiller::Room SharedFiller::room(const PageCache& cache) const {
  if (cache.shared == nullptr) return {};
  buffer::Buffer& buffer = cache.shared->buffer();
  const uint64_t limit = buffer.room().limit_bytes();
  const uint64_t free = 2 * buffer::Room::free_pages_wanted(limit) * buffer::kPage;
  const uint64_t used = buffer.member().occupancy().used_bytes_at_most();
  const uint64_t resident = buffer.member().occupancy().pages_at_most() * buffer::kPage;
  return {limit, used, resident, limit - std::min(limit, free)};
}

uint64_t SharedFiller::limit_bytes(const PageCache& cache) {
  OC_CHECK(cache.shared != nullptr);
  return cache.shared->buffer().room().limit_bytes();
}

// 0: the page is ours to bring in. -EAGAIN: another has done so, or is just doing it.
int SharedFiller::claim(PageCache& cache, const Wanted& wanted) {
  Claims& claims = cache.shared->buffer().claims();
  const uint64_t frame_page = cache.shared->frame_page(wanted.page);
  switch (claims.acquire(frame_page)) {
    case Claims::Acquired::kYes:
    case Claims::Acquired::kNoPlace:
      return 0;
    case Claims::Acquired::kOthers:
      break;
  }
  if (!wanted.is_demanded) return -EAGAIN;
  if (wanted.wait != nullptr) wanted.wait->begin();
  const uint64_t start_ns = os::now_ns();
  claims.wait(frame_page, kClaimNs);
  cache.counters.add(Counter::waits_for_page, 1);
  const uint64_t waited_ns = os::now_ns() - start_ns;
  cache.counters.add(Counter::wait_for_page_ns, waited_ns);
  return waited_ns >= kClaimNs ? 0 : -EAGAIN;
}

// The page and neighbours of it, as far as they are absent and nobody's; nothing if the page is
// there. REQUIRES: the page is claimed.
SharedFiller::Run SharedFiller::claim_around(PageCache& cache, const View& view,
                                             const Wanted& wanted) {
  OC_CHECK(wanted.first <= wanted.page && wanted.page < wanted.end);
  OC_CHECK(wanted.end - wanted.first <= kPagesMax);
  // One page whose touch has just failed, and that is ours to bring in: that another thread has
  // done so since is rare, costs a transfer, and is seen when the page is put in its place.
  if (wanted.was_absent && wanted.end - wanted.first == 1) return {wanted.page, wanted.end, {1}, 1};
  unsigned char present[kPagesMax] = {};
  const os::Piece piece = view.pieces_of(wanted.first, wanted.end);
  const uint64_t shown = piece.size_bytes / buffer::kPage;
  if (os::look_up_presence(piece.address, piece.size_bytes, present) != 0)
    std::memset(present, 1, sizeof present), present[wanted.page - wanted.first] = 0;
  if ((present[wanted.page - wanted.first] & 1) != 0) return {};
  Claims& claims = cache.shared->buffer().claims();
  const uint64_t most = std::min<uint64_t>(bounce_.shape().chunk_bytes / buffer::kPage, kPagesMax);
  bool is_ours[kPagesMax] = {};
  const auto claim_absent = [&](uint64_t page) {
    const uint64_t i = page - wanted.first;
    if (page == wanted.left_out || i >= shown || (present[i] & 1) != 0) return false;
    return is_ours[i] = claims.acquire(cache.shared->frame_page(page)) == Claims::Acquired::kYes;
  };
  is_ours[wanted.page - wanted.first] = true;
  const uint64_t gap = gap_pages_.load(std::memory_order_relaxed) * kPagesAGap <
                               filled_pages_.load(std::memory_order_relaxed)
                           ? kGapPages
                           : 0;
  uint64_t first = wanted.page, end = wanted.page + 1;
  for (uint64_t page = end; page < wanted.end && page - end <= gap && page - first < most; ++page)
    if (claim_absent(page)) end = page + 1;
  for (uint64_t page = first; page > wanted.first && first - page <= gap && end - page < most;)
    if (claim_absent(--page)) first = page;
  Run run;
  run.first = first;
  run.end = end;
  for (uint64_t page = first; page < end; ++page) {
    if (!is_ours[page - wanted.first]) continue;
    run.taken[(page - first) / 64] |= uint64_t{1} << (page - first) % 64;
    ++run.count;
  }
  OC_CHECK(run.count != 0 && run.has(wanted.page));
  return run;
}

void SharedFiller::release_claims(PageCache& cache, const Run& run) {
  for (uint64_t page = run.first; page < run.end; ++page)
    if (run.has(page)) cache.shared->buffer().claims().release(cache.shared->frame_page(page));
}

// Room for all of the run, or for the page alone.
int SharedFiller::acquire_room(PageCache& cache, const Wanted& wanted, Run* run) {
  buffer::Room& room = cache.shared->buffer().room();
  if (room.try_acquire(run->count)) return 0;
  const Run whole = *run;
  *run = Run{wanted.page, wanted.page + 1, {1}, 1};
  for (uint64_t page = whole.first; page < whole.end; ++page)
    if (whole.has(page) && page != wanted.page)
      cache.shared->buffer().claims().release(cache.shared->frame_page(page));
  if (!wanted.is_demanded) return room.try_acquire(1) ? 0 : -ENOMEM;
  return wait_for_room(cache, 1);
}

int SharedFiller::wait_for_room(PageCache& cache, uint64_t pages) {
  buffer::Room& room = cache.shared->buffer().room();
  const uint64_t start_ns = os::now_ns();
  const auto is_unwanted = [](const void* of) {
    const auto& c = *static_cast<const PageCache*>(of);
    return c.is_frozen.load(std::memory_order_seq_cst) || c.shared->is_blocked();
  };
  const int result =
      room.acquire(pages, std::max<uint64_t>(pager_.options.wait_ns_max, 1), {is_unwanted, &cache});
  cache.counters.add(Counter::waits_for_frame, 1);
  cache.counters.add(Counter::wait_for_frame_ns, os::now_ns() - start_ns);
  return result;
}

// Reads the run and brings its pages in.
int SharedFiller::transfer(PageCache& cache, const View& view, Run* to_bring_in) {
  Run& run = *to_bring_in;
  const uint64_t start = run.first * buffer::kPage, bytes = (run.end - run.first) * buffer::kPage;
  const std::span<std::byte> buffer = bounce_.acquire(bytes);
  OC_CHECK(buffer.size() >= bytes);
  const uint64_t stored = cache.stored_bytes(start, bytes);
  const bool is_hole = stored == 0 || cache.is_hole(start, stored);
  int result = 0;
  if (!is_hole) {
    cache.read_gate.enter();
    result = store::read(*cache.store.load(), start, buffer.first(stored));
    cache.read_gate.leave();
    OC_ASSERT(result <= 0);
    if (result == -EAGAIN) result = -EIO;  // it means something else here
    cache.counters.add(Counter::read_requests, 1);
    cache.counters.add(Counter::read_bytes, stored);
    OC_CHECK(run.count <= run.end - run.first);
    filled_pages_.fetch_add(run.count, std::memory_order_relaxed);
    gap_pages_.fetch_add(run.end - run.first - run.count, std::memory_order_relaxed);
  }
  const uint64_t from_store = is_hole ? 0 : stored;
  std::memset(buffer.data() + from_store, 0, bytes - from_store);
  for (uint64_t page = run.first; page < run.end && result == 0;) {
    uint64_t end = page;
    while (end < run.end && run.has(end)) ++end;
    if (end == page) {
      ++page;
      continue;
    }
    uint64_t there_pages = 0;
    result = cache.frames->install_absent(view.pieces_of(page, end),
                                          buffer.data() + (page - run.first) * buffer::kPage,
                                          &there_pages);
    run.is_there = run.count == 1 && there_pages == 1;
    // What took the place of the view, or of the frames, is found by the next touch.
    if (result == -ENOENT || result == -EINVAL) result = -EAGAIN;
    page = end;
  }
  bounce_.release(buffer);
  if (result == 0 && is_hole && !run.is_there) cache.counters.add(Counter::zero_fills, run.count);
  return result;
}

void SharedFiller::report(PageCache& cache, const Run& run, const Wanted& wanted) {
  buffer::Room& room = cache.shared->buffer().room();
  for (uint64_t page = run.first; page < run.end;) {
    // The page that was asked for is no guess.
    const bool is_asked = wanted.is_demanded && page == wanted.page;
    uint64_t end = page;
    while (end < run.end && run.has(end) &&
           (!wanted.is_guess || (wanted.is_demanded && end == wanted.page) == is_asked))
      ++end;
    if (end > page)
      room.report(cache.shared->frame_page(page), end - page, wanted.is_guess && !is_asked);
    for (uint64_t p = page; p < end && !run.is_there; ++p)
      cache.note_fill(p, wanted.is_guess && !is_asked);
    page = std::max(end, page + 1);
  }
}

int SharedFiller::fill(PageCache& cache, const View& view, const Wanted& wanted, uint32_t* filled) {
  OC_CHECK(cache.shared != nullptr && cache.page_bytes == buffer::kPage);
  if (const int result = claim(cache, wanted); result != 0) return result;
  // Before anybody looks what is there.
  const buffer::Fills::Scope filling(cache.shared->buffer().member(),
                                     cache.shared->frame_page(wanted.first),
                                     wanted.end - wanted.first);
  Run run = claim_around(cache, view, wanted);
  if (run.count == 0) {  // it is there by now
    cache.shared->buffer().claims().release(cache.shared->frame_page(wanted.page));
    return 0;
  }
  if (wanted.wait != nullptr) wanted.wait->begin();
  int result = acquire_room(cache, wanted, &run);
  if (result == 0) {
    result = transfer(cache, view, &run);
    OC_ASSERT(result <= 0);
    if (result == 0) report(cache, run, wanted);
    // Some of them may have come in.
    if (result != 0) cache.shared->buffer().room().note_unreported(run.count);
    cache.shared->buffer().room().release(run.count);
  }
  release_claims(cache, run);
  if (result != 0) {
    if (result == -EAGAIN) return result;
    if (wanted.is_demanded) cache.counters.add(Counter::fill_errors, 1);
    return result;
  }
  if (run.is_there) return 0;  // what it brought in for nothing is no page that came again
  *filled = run.count;
  pager_.tuner.note_brought_in(run.count);
  const uint32_t asked = wanted.is_demanded ? 1 : 0;
  cache.counters.add(Counter::fills, asked);
  cache.counters.add(Counter::prefetch_fills, run.count - asked);
  return 0;
}

int SharedFiller::pin(PageCache& cache, View& view, uint64_t page, CallWait* wait) {
  buffer::Pins& pins = cache.shared->buffer().pins();
  const uint64_t frame_page = cache.shared->frame_page(page);
  if (const int result = pins.add(frame_page); result != 0) return result;
  for (;;) {
    uint32_t filled = 0;
    int result = -EAGAIN;
    if (view.is_replaced.load() || cache.is_frozen.load() || !cache.shared->enter()) {
      wait->begin();
      os::yield();
    } else {
      Wanted wanted{page, page, page + 1};
      wanted.wait = wait;
      result = fill(cache, view, wanted, &filled);
      cache.shared->leave();
    }
    if (result == 0) return 0;  // and it stays, perhaps where the kernel swaps
    if (result == -EAGAIN) continue;
    pins.drop(frame_page);
    return result;
  }
}

void SharedFiller::unpin(PageCache& cache, uint64_t page) {
  cache.shared->buffer().pins().drop(cache.shared->frame_page(page));
}

bool SharedFiller::is_pinned(const PageCache& cache, uint64_t page) const {
  return cache.shared->buffer().pins().has(cache.shared->frame_page(page));
}

}  // namespace outcore::paging
