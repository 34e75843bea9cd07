#include "core/paging/overwriter.h"

#include <algorithm>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

struct Pages {
  uint64_t first, end;
};

Pages pages_of(const PageCache& cache, uint64_t offset, uint64_t size_bytes) {
  OC_CHECK(size_bytes != 0);
  return {std::min(offset / cache.page_bytes, cache.page_count()),
          std::min((offset + size_bytes - 1) / cache.page_bytes + 1, cache.page_count())};
}

// Of a page that is claimed.
bool is_in_memory(const PageCache& cache, uint64_t page) {
  const PageState state = cache.words[page].glance();
  OC_ASSERT(state == PageState::kBusy || state == PageState::kFilling);
  return state == PageState::kBusy;
}

// Nothing of it is written, and nobody has it.
bool may_change_within(const PageValue& seen) {
  return seen.state() == PageState::kResident && seen.pins() == 0 && !seen.has(PageValue::kDirty) &&
         !seen.has(PageValue::kWriting) && !seen.has(PageValue::kZeroed);
}

}  // namespace

Status Overwriter::overwrite(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                             base::FunctionRef<void()> change) {
  const auto [first, end] = pages_of(cache, offset, size_bytes);
  const os::SignalBlock block;
  if (cache.shared != nullptr || cache.is_writable || !are_few(cache, first, end) ||
      !claim_pages(cache, first, end))
    return change_absent(cache, offset, size_bytes, change);
  change();
  cache.note_change(offset, size_bytes);
  const uint64_t from = base::round_down(offset, base::kSystemPage);
  const uint64_t to = base::round_up(offset + size_bytes, base::kSystemPage);
  bool is_read = true;
  for (uint64_t page = first; page < end; ++page)
    if (is_in_memory(cache, page))
      is_read = read_again(cache, page, std::max(from, page * cache.page_bytes),
                           std::min(to, (page + 1) * cache.page_bytes)) == 0 &&
                is_read;
  release_pages(cache, first, end);
  // The old bytes, or none, are in a page that counts as resident: it leaves.
  return is_read ? Status() : change_absent(cache, offset, size_bytes, [] {});
}

Status Overwriter::change_absent(PageCache& cache, uint64_t offset, uint64_t size_bytes,
                                 base::FunctionRef<void()> change) {
  const auto [first, end] = pages_of(cache, offset, size_bytes);
  const os::SignalBlock block;
  if (Status s = reshaper_.evict_and_block(cache, first, end); !s) return s;
  change();
  cache.note_change(offset, size_bytes);
  reshaper_.unblock(cache, first, end);
  return {};
}

// What is claimed cannot leave for as long as `change` takes: the budget must do without it.
bool Overwriter::are_few(const PageCache& cache, uint64_t first, uint64_t end) const {
  const uint64_t bytes = (end - first) * cache.page_bytes;
  return end - first <= kPagesMax &&
         bytes <= std::max(pager_.budget.limit() / 16, cache.page_bytes);
}

// Absent pages are claimed as if they were being filled, resident ones as if they were being
// mapped. False: one is in other hands, and none is claimed.
bool Overwriter::claim_pages(PageCache& cache, uint64_t first, uint64_t end) {
  OC_CHECK(first <= end && end - first <= kPagesMax);
  for (uint64_t page = first; page < end; ++page) {
    PageValue seen = cache.words[page].load();
    if (may_change_within(seen) && cache.words[page].change(seen, seen.with(PageState::kBusy)))
      continue;
    if (cache.claim(page)) continue;
    release_pages(cache, first, page);
    return false;
  }
  return true;
}

void Overwriter::release_pages(PageCache& cache, uint64_t first, uint64_t end) {
  for (uint64_t page = first; page < end; ++page) {
    if (!is_in_memory(cache, page)) {
      cache.abandon(page);
      continue;
    }
    cache.words[page].update([](PageValue v) { return v.with(PageState::kResident); });
    // Who has met the page while it had no memory, and sleeps in the kernel.
    cache.for_each_showing(page, [&](View& v) { cache.frames->wake(v.piece_of(page)); });
  }
}

// The bytes [from, to), whole system pages, of a page that is Busy and ours. -errno: some are old.
int Overwriter::read_again(PageCache& cache, uint64_t page, uint64_t from, uint64_t to) {
  OC_CHECK(from < to && from / cache.page_bytes == page && to <= (page + 1) * cache.page_bytes);
  const uint64_t most = pager_.bounce.shape().chunk_bytes;
  int result = 0;
  for (uint64_t at = from; at < to && result == 0;) {
    const uint64_t bytes = std::min(to - at, most);
    const std::span<std::byte> buffer = pager_.bounce.acquire(bytes);
    OC_CHECK(buffer.size() >= bytes);
    const uint64_t stored = cache.stored_bytes(at, bytes);
    cache.read_gate.enter();
    result = stored == 0 ? 0 : store::read(*cache.store.load(), at, buffer.first(stored));
    cache.read_gate.leave();
    std::memset(buffer.data() + stored, 0, bytes - stored);
    if (result == 0 && cache.frames->can_share())
      result = cache.frames->overwrite({nullptr, at, bytes, false, 0}, buffer.data());
    else if (result == 0)
      cache.for_each_showing(page, [&](View& view) {
        const Piece part = view.piece_of(page).part(at, at + bytes);
        if (part.size_bytes == 0 || result != 0) return;
        uint32_t tries = 0;
        do {
          result = cache.frames->overwrite(part, buffer.data() + (part.offset - at));
        } while (supply_.can_repeat(result, Caller::kThread, &tries));
      });
    pager_.bounce.release(buffer);
    at += bytes;
  }
  return result;
}

}  // namespace outcore::paging
