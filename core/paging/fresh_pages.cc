#include "core/paging/fresh_pages.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/paging/page_batch.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using metrics::Counter;
using region::PageValue;
using region::View;

namespace {

constexpr uint64_t kPrepareRun = 16;  // 64 KiB in one call of the kernel

}  // namespace

void FreshPages::prepare(View& view, uint64_t first, uint64_t end) {
  OC_CHECK(first <= end);
  OC_CHECK(end <= view.end_page());
  PageCache& cache = *view.cache;
  // A larger page is one fault anyway, and its untouched parts would be written back.
  if (!view.is_writable || cache.page_bytes != base::kSystemPage) return;
  if (cache.shared != nullptr) return;  // what is written there is marked, page by page
  for (uint64_t page = first; page < end;) {
    // Only into what is free: for a hint nothing is evicted.
    const uint64_t low = pager_.budget.limit() / 100 * pager_.options.low_watermark;
    if (pager_.budget.used() + kPrepareRun * cache.page_bytes > low) return;
    const uint64_t count = prepare_run(cache, view, page, std::min(end - page, kPrepareRun));
    page += std::max<uint64_t>(count, 1);
  }
}

// As many of the pages as can be had in a row. Gives their number.
uint64_t FreshPages::prepare_run(PageCache& cache, View& view, uint64_t first, uint64_t count) {
  uint32_t frame[kPrepareRun];
  OC_CHECK(count <= kPrepareRun);
  OC_CHECK(cache.page_bytes == base::kSystemPage);
  OC_CHECK(view.is_writable);
  uint64_t n = 0;
  for (; n < count && PageBatch::can_add(pager_, cache, view, first + n) && cache.claim(first + n);
       ++n)
    if (supply_.allocate_frame(cache, Caller::kThread, 0, &frame[n]) != 0) {
      cache.abandon(first + n);
      break;
    }
  if (n == 0) return 0;
  os::Frames& frames = *cache.frames;
  const uint64_t start = first * cache.page_bytes, bytes = n * cache.page_bytes;
  // Asked now that the pages are ours: before, somebody could still have written them back.
  const uint64_t stored = cache.stored_bytes(start, bytes);
  const bool is_fresh = stored == 0 || store::is_hole(*cache.store.load(), start, stored);
  const os::Piece piece = view.pieces_of(first, first + n);
  OC_CHECK(stored <= bytes);
  OC_CHECK(piece.size_bytes == bytes);
  for (uint64_t i = 0; i < n; ++i) filler_.begin(cache, first + i, frame[i]);
  const int result = is_fresh ? frames.install_zeros(piece, true) : -EEXIST;
  cache.counters.add(Counter::zero_fills, result == 0 ? n : 0);
  for (uint64_t i = 0; i < n; ++i) {
    const uint64_t page = first + i;
    if (result == 0) {
      if (frames.can_share()) view.set_shown(page, true);
      cache.counters.add(Counter::prefetch_fills, 1);
      filler_.finish(cache, page, frame[i], 0,
                     PageValue(frames.has_write_faults() ? PageValue::kDirty : 0));
      continue;
    }
    if (is_fresh) filler_.undo(cache, view.piece_of(page), page, true);
    supply_.free_frame(cache, frame[i]);
    cache.abandon(page);
    frames.wake(view.piece_of(page));
  }
  return n;
}

}  // namespace outcore::paging
