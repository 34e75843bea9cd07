#include "core/paging/filler.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

int Filler::fill(PageCache& cache, View& view, uint64_t page, bool is_write, Caller caller) {
  OC_CHECK(cache.words[page].glance() == PageState::kFilling);
  OC_ASSERT(view.cache == &cache);
  uint32_t frame = budget::kNone;
  if (const int result = supply_.allocate_frame(
          cache, caller, std::max<uint64_t>(pager_.options.wait_ns_max, 1), &frame);
      result != 0) {
    cache.abandon(page);
    return result;
  }
  int result = read_page(cache, view, page, frame, is_write);
  for (uint32_t tries = 0; supply_.can_repeat(result, caller, &tries);)
    result = read_page(cache, view, page, frame, is_write);
  if (result != 0) cache.counters.add(Counter::fill_errors, 1);
  PageValue flags(is_write && cache.frames->has_write_faults() ? PageValue::kDirty : 0);
  if (result != 0 && may_zero(cache, view)) {
    result = fill_zeros(cache, view, page, frame, false);
    if (result == 0)
      flags = PageValue(PageValue::kZeroed);
    else
      cache.zeroed_pages.fetch_sub(1);
  }
  OC_ASSERT(result <= 0);
  cache.counters.add(Counter::fills, 1);
  finish(cache, page, frame, result, flags);
  return result;
}

// Whether zeros may stand for bytes that could not be read; then the page is counted. Never where
// somebody may write: the store would get zeros in their place. Who makes the cache writable looks
// at the count afterwards.
bool Filler::may_zero(PageCache& cache, const View& view) {
  if (view.on_error != OnError::kZeroFill) return false;
  cache.zeroed_pages.fetch_add(1, std::memory_order_seq_cst);
  if (!cache.is_writable.load(std::memory_order_seq_cst)) {
    cache.has_zeroed.store(true, std::memory_order_seq_cst);
    return true;
  }
  cache.zeroed_pages.fetch_sub(1);
  return false;
}

void Filler::begin(const PageCache& cache, uint64_t page, uint32_t frame) {
  OC_CHECK(page < cache.page_count());
  OC_ASSERT(pager_.cache_of(cache.id) == &cache);
  OC_ASSERT(cache.words[page].glance() == PageState::kFilling);
  budget::FrameRecord& record = pager_.frames[frame];
  std::atomic_ref(record.page).store(page, std::memory_order_relaxed);
  std::atomic_ref(record.cache).store(cache.id, std::memory_order_seq_cst);
}

int Filler::read_store(PageCache& cache, uint64_t offset, std::span<std::byte> into) {
  OC_ASSERT(!into.empty());
  OC_ASSERT(offset + into.size() <= cache.store_bytes.load());
  cache.read_gate.enter();
  const int result = store::read(*cache.store.load(), offset, into);
  OC_ASSERT(result <= 0);
  cache.read_gate.leave();
  cache.counters.add(Counter::read_requests, 1);
  cache.counters.add(Counter::read_bytes, into.size());
  return result;
}

// The page's bytes are in, and the view shows them. Where the kernel cannot show all of them now,
// the touch that misses some asks again: what was shown may have been written already.
void Filler::show_new(PageCache& cache, View& view, uint64_t page) {
  OC_CHECK(cache.frames->can_share());
  OC_ASSERT(cache.words[page].glance() == PageState::kFilling);
  static_cast<void>(cache.frames->show(view.piece_of(page), {}));
  view.set_shown(page, true);
}

// The whole page reads zero, whatever part of it the view shows.
int Filler::fill_zeros(PageCache& cache, View& view, uint64_t page, uint32_t frame,
                       bool is_written) {
  OC_CHECK(cache.words[page].glance() == PageState::kFilling);
  static const std::byte zeros[65536] = {};
  os::Frames& frames = *cache.frames;
  const uint64_t page_bytes = cache.page_bytes, start = page * page_bytes;
  const Piece piece = view.piece_of(page);
  const bool is_installed = !frames.can_share() || piece.size_bytes == page_bytes;
  int result = 0;
  if (is_written) begin(cache, page, frame);
  if (is_installed) {
    result = frames.install_zeros(piece, is_written);
    if (result == 0 && frames.can_share()) view.set_shown(page, true);
  } else {
    for (uint64_t at = 0; at < page_bytes && result == 0; at += sizeof zeros)
      result = frames.deposit(start + at, {zeros, std::min(sizeof zeros, page_bytes - at)});
    if (result == 0) show_new(cache, view, page);
  }
  if (result != 0) undo(cache, piece, page, is_installed);
  return result;
}

// Reads the page through bounce buffers and shows it in the view. Bytes past the end of the store
// are zero.
int Filler::read_page(PageCache& cache, View& view, uint64_t page, uint32_t frame, bool is_write) {
  OC_CHECK(cache.words[page].glance() == PageState::kFilling);
  os::Frames& frames = *cache.frames;
  const uint64_t page_bytes = cache.page_bytes, start = page * page_bytes;
  const uint64_t stored = cache.stored_bytes(start, page_bytes);
  const Piece piece = view.piece_of(page);
  OC_CHECK(stored <= page_bytes);
  OC_ASSERT(piece.size_bytes != 0);
  // Shared frames hold whole pages; a view that shows only a part gets it by show().
  const bool is_deposited = frames.can_share() && (piece.size_bytes != page_bytes ||
                                                   page_bytes > pager_.bounce.shape().chunk_bytes);
  const bool is_written = is_write && page_bytes == base::kSystemPage;
  int result = 0;
  if (stored == 0 || store::is_hole(*cache.store.load(), start, stored)) {
    cache.counters.add(Counter::zero_fills, 1);
    return fill_zeros(cache, view, page, frame, is_written);
  }
  const std::span<std::byte> buffer = pager_.bounce.acquire(page_bytes);
  OC_CHECK(buffer.size() >= base::kSystemPage);
  for (uint64_t at = 0; at < page_bytes && result == 0; at += buffer.size()) {
    const uint64_t bytes = std::min<uint64_t>(buffer.size(), page_bytes - at);
    const uint64_t from_store = at >= stored ? 0 : std::min(bytes, stored - at);
    OC_CHECK(from_store <= bytes);
    if (from_store > 0) result = read_store(cache, start + at, buffer.first(from_store));
    if (result != 0) break;
    std::memset(buffer.data() + from_store, 0, bytes - from_store);
    if (is_deposited) {
      result = frames.deposit(start + at, buffer.first(bytes));
    } else if (const Piece part = piece.part(start + at, start + at + bytes);
               part.size_bytes != 0) {
      if (is_written) begin(cache, page, frame);
      result = frames.install(part, buffer.data() + (part.offset - start - at), is_written);
    }
  }
  pager_.bounce.release(buffer);
  if (result != 0)
    undo(cache, piece, page, !is_deposited);
  else if (is_deposited)
    show_new(cache, view, page);
  else if (frames.can_share())
    view.set_shown(page, true);
  return result;
}

// What was written of the piece, which is unmapped, goes to the store.
void Filler::save_written(PageCache& cache, const Piece& piece) {
  OC_CHECK(cache.frames->can_share());
  OC_CHECK(piece.size_bytes != 0);
  os::Frames& frames = *cache.frames;
  os::SubpageSet written;
  const bool is_unknown = frames.collect(piece, false, &written) != 0;
  if (is_unknown) written.add_range(0, cache.page_bytes / base::kSystemPage);
  cache.epoch.enter();  // before the lock: a cut may be under way for long
  const os::Locked locked(spare_lock_);
  for (uint64_t at = 0; at < piece.size_bytes; at += base::kSystemPage) {
    const uint64_t offset = piece.offset + at, end = cache.store_bytes.load();
    // What was never installed scans as written, too.
    if (!written.has(piece.first_subpage + at / base::kSystemPage) || !frames.holds(offset) ||
        offset >= end)
      continue;
    const uint64_t bytes = std::min<uint64_t>(base::kSystemPage, end - offset);
    OC_CHECK(bytes != 0);
    int result = frames.copy_out({nullptr, offset, base::kSystemPage, true, 0}, &spare_[0]);
    // A write that fails may leave anything in its range: none where nobody wrote.
    std::byte* const stored = &spare_[base::kSystemPage];
    if (result == 0 && is_unknown && read_store(cache, offset, {stored, bytes}) == 0 &&
        std::memcmp(stored, &spare_[0], bytes) == 0)
      continue;
    if (result == 0) {
      cache.write_gate.enter();
      result = store::write(*cache.store.load(), offset, {&spare_[0], bytes});
      cache.write_gate.leave();
      cache.note_change(offset, bytes);
    }
    if (result != 0)
      cache.write_failures.note_unreported({-result, offset, base::kSystemPage, true});
  }
  cache.epoch.leave();
}

void Filler::undo(PageCache& cache, const Piece& piece, uint64_t page, bool was_seen) {
  OC_CHECK(cache.words[page].glance() == PageState::kFilling);
  os::Frames& frames = *cache.frames;
  Piece gone = piece;
  if (frames.can_share()) {
    gone = {nullptr, page * cache.page_bytes, cache.page_bytes, false, 0};
    frames.unmap({&piece, 1});
    if (was_seen && piece.is_writable && frames.reports_written()) save_written(cache, piece);
  }
  frames.free({&gone, 1});
}

void Filler::finish(PageCache& cache, uint64_t page, uint32_t frame, int result, PageValue flags,
                    bool is_guess) {
  OC_CHECK(frame < pager_.frames.count());
  OC_CHECK(result <= 0);
  OC_CHECK(cache.words[page].glance() == PageState::kFilling);
  OC_ASSERT(flags.pins() == 0);
  OC_ASSERT(!flags.has(PageValue::kWriting));
  OC_ASSERT(!flags.has(PageValue::kZeroed) || cache.zeroed_pages.load() > 0);
  if (result == 0) {
    begin(cache, page, frame);
    budget::FrameRecord& record = pager_.frames[frame];
    record.prev = record.next = budget::kNone;
    record.is_in_policy = record.list = record.is_known = 0;
    record.is_guess = is_guess ? 1 : 0;
    cache.resident_bytes.fetch_add(cache.page_bytes, std::memory_order_relaxed);
    cache.entry->resident_bytes.fetch_add(cache.page_bytes, std::memory_order_relaxed);
    OC_ASSERT(cache.resident_bytes.load() <= pager_.budget.used_max());
    if (cache.share_frames) cache.fills_since_look.fetch_add(1, std::memory_order_relaxed);
    cache.note_fill(page, is_guess);
    pager_.tuner.note_brought_in(1);
    pager_.shard_of(cache, page).inbox.push(pager_.frames, frame);
    cache.words[page].update(
        [&](PageValue) { return flags.with(PageState::kResident).with_frame(frame); });
    return;
  }
  supply_.free_frame(cache, frame);
  cache.words[page].update([&](PageValue) {
    return PageValue().with(PageState::kFailed).with_frame(static_cast<uint32_t>(-result));
  });
}

}  // namespace outcore::paging
