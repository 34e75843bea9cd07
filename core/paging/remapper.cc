#include "core/paging/remapper.h"

#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

// The last fault that found its page resident: the same again means that the kernel took the
// mapping away.
thread_local const std::byte* last_resident_touch = nullptr;

}  // namespace

int Remapper::resolve_resident(PageCache& cache, View& view, uint64_t page, std::byte* address,
                               bool is_write, PageValue seen) {
  OC_CHECK(seen.state() == PageState::kResident);
  const auto is_shown_now = [&] { return !cache.frames->can_share() || view.is_shown(page); };
  const auto must_allow_now = [&] {
    return is_write && address != nullptr && cache.frames->has_write_faults();
  };
  // Written already: somebody else's fault let it through.
  const bool is_allowed = seen.has(PageValue::kDirty) && cache.page_bytes == base::kSystemPage;
  if (is_shown_now() && (is_allowed || !must_allow_now())) {
    const bool is_sure = !cache.frames->can_share() && !is_allowed;
    if (address == nullptr || is_sure || last_resident_touch != address) {
      last_resident_touch = address;
      return 0;
    }
    last_resident_touch = nullptr;
  }
  region::PageWord& word = cache.words[page];
  if (!word.change(seen, seen.with(PageState::kBusy))) return -EAGAIN;
  // Asked again now that the page is ours: it may have gone and come back in the same frame,
  // through another view or in frames of another kind, and its word tells nothing of that.
  os::Frames& frames = *cache.frames;
  const bool is_shown = is_shown_now(), must_allow = must_allow_now();
  int result = 0;
  os::SubpageSet written;
  const Piece piece = view.piece_of(page);
  if (frames.can_share() && (!is_shown || !must_allow)) {
    if (is_shown && frames.reports_written() && frames.collect(piece, false, &written) != 0)
      written.add_range(0, os::SubpageSet::kCount);
    if (!frames.reports_written() && seen.has(PageValue::kDirty))
      written.add_range(0, os::SubpageSet::kCount);
    result = frames.show(piece, written);
    if (result == 0) view.set_shown(page, true);
    cache.counters.add(Counter::minor_faults, 1);
  }
  uint64_t flags = 0;
  if (result == 0 && must_allow) {
    result = make_writable(cache, view, page, address);
    flags = PageValue::kDirty;
  }
  word.update([&](PageValue v) { return v.with(PageState::kResident).plus(flags); });
  if (result == 0) frames.wake(piece);
  return result;
}

int Remapper::rescue(PageCache& cache, View& view, uint64_t page, std::byte* address, bool is_write,
                     PageValue seen) {
  OC_CHECK(seen.state() == PageState::kLeaving);
  region::PageWord& word = cache.words[page];
  if (!word.change(seen, seen.with(PageState::kBusy))) return -EAGAIN;
  os::Frames& frames = *cache.frames;
  int result = 0;
  uint64_t flags = 0;
  if (frames.can_share()) {
    os::SubpageSet written;
    if (!frames.reports_written()) {
      if (seen.has(PageValue::kDirty)) written.add_range(0, os::SubpageSet::kCount);
    } else if (!seen.has(PageValue::kCleaned)) {
      cache.look_at_written(page, &written);
    }
    view.set_shown(page, true);
    cache.for_each_showing(page, [&](View& v) {
      const Piece piece = v.piece_of(page);
      if (const int r = frames.show(piece, written); r != 0) result = r;
      frames.wake(piece);
    });
  }
  if (result == 0 && is_write && address != nullptr && frames.has_write_faults()) {
    result = make_writable(cache, view, page, address);
    flags = PageValue::kDirty;
  }
  cache.counters.add(Counter::rescues, 1);
  pager_.rescues.fetch_add(1, std::memory_order_relaxed);
  cache.publish(published::EventKind::kRescue, page);
  Shard& shard = pager_.shard_of(cache, page);
  shard.inbox.push(pager_.frames, seen.frame());
  shard.note_rescue();
  word.update([&](PageValue v) {
    return v.with(PageState::kResident).minus(PageValue::kCleaned).plus(flags);
  });
  frames.wake(view.piece_of(page));
  return result;
}

int Remapper::make_writable(PageCache& cache, View& view, uint64_t page, std::byte* address) {
  OC_ASSERT(cache.words[page].glance() == PageState::kBusy);
  Piece piece = view.piece_of(page);
  if (cache.frames->reports_written()) {  // only the system page that is written
    const auto at = static_cast<uint64_t>(view.system_page_at(address) - piece.address);
    piece = {piece.address + at, piece.offset + at, base::kSystemPage, true,
             piece.first_subpage + static_cast<uint32_t>(at / base::kSystemPage)};
  }
  cache.counters.add(Counter::write_faults, 1);
  note_late_write(cache, view);
  return cache.frames->allow_write(piece);
}

// A page that was filled for a read is written: a second fault, where the frames have write faults.
// If many pages have both, frames without are cheaper, though their fills and evictions are dearer
// (docs/internals/decisions/0004-frames-and-delivery.md). The pages are evicted in between, so only
// a few may be there.
void Remapper::note_late_write(PageCache& cache, View& view) {
  constexpr uint32_t kLook = 512, kFillsMax = 4 * kLook;
  constexpr uint64_t kResidentBytesMax = 64 << 20;
  if (!cache.share_frames || cache.frames->can_share()) return;
  if ((cache.late_writes.fetch_add(1, std::memory_order_relaxed) + 1) % kLook != 0) return;
  if (cache.fills_since_look.exchange(0) > kFillsMax) return;
  if (cache.resident_bytes.load() > kResidentBytesMax || pager_.pinned_bytes.load() != 0) return;
  view.users.fetch_add(1, std::memory_order_relaxed);
  if (!queue_.push({&view, 0, 1, 0, PrefetchTask::kShareFrames, false, 0}))
    view.users.fetch_sub(1, std::memory_order_release);
}

}  // namespace outcore::paging
