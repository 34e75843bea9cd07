#include "core/paging/pins.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/base/error.h"
#include "core/base/units.h"
#include "core/os/wait.h"
#include "core/paging/transfer_error.h"

namespace outcore::paging {

using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

int Pins::pin_page(View& view, uint64_t page, std::byte* address, bool is_write) {
  PageCache& cache = *view.cache;
  if (cache.shared != nullptr) {
    if (!cache.shared->buffer().pins().reserve(1)) return -ENOMEM;
    return pin_shared_page(view, page, is_write);
  }
  CallWait wait(cache.counters);
  for (;;) {
    if (const int result = fault_path_.bring_in(view, page, address, is_write, &wait); result != 0)
      return result;
    PageValue seen = cache.words[page].load();
    if (seen.state() == PageState::kLeaving) {  // readable as it is, but it must not leave
      const int result = remapper_.rescue(cache, view, page, address, is_write, seen);
      if (result != 0 && result != -EAGAIN) return result;
      continue;
    }
    if (seen.state() != PageState::kResident || seen.has(PageValue::kWriting)) {
      wait.begin();
      if (seen.has(PageValue::kWriting)) cache.words[page].wait_while(seen, 100'000'000);
      continue;
    }
    if (cache.frames->can_share() && !view.is_shown(page)) continue;
    if (seen.pins() == PageValue::kPinsMax) return -EOVERFLOW;
    OC_CHECK(seen.frame() < pager_.frames.count());
    if (!cache.words[page].change(seen, seen.with_pins(seen.pins() + 1))) continue;
    if (seen.pins() == 0)
      pager_.pinned_bytes.fetch_add(cache.page_bytes, std::memory_order_relaxed);
    return 0;
  }
}

// The last pin of a parked page: the policy lost it when it was found pinned, and must be told of
// it before it can be evicted again. So the frame is pushed into the inbox while the pin still
// holds it in its place.
void Pins::unpin_page(PageCache& cache, uint64_t page) {
  if (cache.shared != nullptr) return shared_.unpin(cache, page);
  region::PageWord& word = cache.words[page];
  PageValue seen = word.load();
  for (;;) {
    OC_CHECK(seen.pins() > 0);
    OC_CHECK(seen.state() == PageState::kResident || seen.state() == PageState::kBusy);
    if (seen.pins() == 1 && seen.has(PageValue::kParked)) {
      if (!word.change(seen, seen.minus(PageValue::kParked))) continue;
      pager_.shard_of(cache, page).inbox.push(pager_.frames, seen.frame());
      seen = word.load();
      continue;
    }
    if (!word.change(seen, seen.with_pins(seen.pins() - 1))) continue;
    if (seen.pins() == 1)
      pager_.pinned_bytes.fetch_sub(cache.page_bytes, std::memory_order_relaxed);
    return;
  }
}

// Pins that are under way count with those that are in: two at once could each find the room that
// is there once, and together leave none to fills.
Status Pins::claim_pins(const PageCache& cache, uint64_t first, uint64_t end,
                        uint64_t* claimed_bytes) {
  const auto is_too_much = [&] {
    return pager_.pinned_bytes.load() + pager_.pinning_bytes.load() + pager_.pin_reserve_bytes() >
           pager_.budget.limit();
  };
  *claimed_bytes = (end - first) * cache.page_bytes;
  pager_.pinning_bytes.fetch_add(*claimed_bytes);
  if (!is_too_much()) return {};
  // Pages that are pinned already are counted twice here: look closer only in that case.
  uint64_t fresh = 0;
  for (uint64_t page = first; page < end; ++page)
    if (cache.words[page].load().pins() == 0) fresh += cache.page_bytes;
  pager_.pinning_bytes.fetch_sub(*claimed_bytes - fresh);
  *claimed_bytes = fresh;
  if (!is_too_much()) return {};
  pager_.pinning_bytes.fetch_sub(fresh);
  return Error{ENOMEM,
               "pin " + base::format_bytes((end - first) * cache.page_bytes) + " of " + cache.uri +
                   ": the budget of " + base::format_bytes(pager_.budget.limit()) +
                   " cannot hold it; the least that would do is " +
                   base::format_bytes(pager_.pinned_bytes.load() + pager_.pinning_bytes.load() +
                                      fresh + pager_.pin_reserve_bytes())};
}

// REQUIRES: reserved.
int Pins::pin_shared_page(View& view, uint64_t page, bool is_write) {
  PageCache& cache = *view.cache;
  CallWait wait(cache.counters);
  int result = shared_.pin(cache, view, page, &wait);
  if (result != 0 || !is_write) return result;
  while ((result = writer_.allow(cache, view, page, {page, page + 1})) == -EAGAIN) os::yield();
  if (result != 0) shared_.unpin(cache, page);
  return result;
}

// All of them or none. The kernel may write through a pin without a fault.
Status Pins::pin_shared(View& view, uint64_t first, uint64_t end) {
  PageCache& cache = *view.cache;
  buffer::Pins& pins = cache.shared->buffer().pins();
  const bool is_reserved = pins.reserve(end - first);
  int result = is_reserved ? 0 : -ENOMEM;
  uint64_t page = first;
  while (page < end && result == 0) {
    result = pin_shared_page(view, page, view.is_writable.load());
    if (result == 0) ++page;
  }
  if (result == 0) return {};
  for (uint64_t p = first; p < page; ++p) shared_.unpin(cache, p);
  if (is_reserved && end - page > 1) pins.unreserve(end - page - 1);
  const std::string what =
      "pin " + base::format_bytes((end - first) * cache.page_bytes) + " of " + cache.uri;
  if (result != -ENOMEM) return base::system_error(result, what);
  return Error{ENOMEM, what + ": all who share its buffer may pin half of its limit together, " +
                           base::format_bytes(shared_.room(cache).limit_bytes / 2) +
                           ", and one process some 10 MiB"};
}

Status Pins::pin(View& view, const std::byte* from, uint64_t size_bytes) {
  OC_CHECK(size_bytes != 0);
  OC_ASSERT(view.contains(from));
  PageCache& cache = *view.cache;
  const uint64_t first = view.page_of(from), end = view.page_of(from + size_bytes - 1) + 1;
  if (cache.shared != nullptr) return pin_shared(view, first, end);
  uint64_t claimed = 0;
  if (Status s = claim_pins(cache, first, end, &claimed); !s) return s;
  for (uint64_t page = first; page < end; ++page) {
    const Piece piece = view.piece_of(page);
    int result = pin_page(view, page, piece.address, false);
    const uint64_t done = result != 0 ? claimed : std::min(claimed, cache.page_bytes);
    OC_CHECK(done <= claimed);
    const uint64_t pinning = pager_.pinning_bytes.fetch_sub(done);
    OC_CHECK(pinning >= done);
    claimed -= done;
    if (result == 0 && view.is_writable) {
      // The kernel may write through a pin without a fault: from now on it counts as written.
      region::PageWord& word = cache.words[page];
      PageValue seen = word.load();
      while (seen.state() != PageState::kResident || seen.has(PageValue::kWriting) ||
             !word.change(seen, seen.with(PageState::kBusy))) {
        if (seen.state() != PageState::kResident || seen.has(PageValue::kWriting))
          word.wait_while(seen, 100'000'000);
        seen = word.load();
      }
      const auto* page_aligned = reinterpret_cast<const std::byte*>(
          base::round_down(reinterpret_cast<uint64_t>(from), base::kSystemPage));
      Piece part = piece;
      if (page_aligned > piece.address) {
        const uint64_t skip = static_cast<uint64_t>(page_aligned - piece.address);
        part = {piece.address + skip, piece.offset + skip, piece.size_bytes - skip, true,
                piece.first_subpage + static_cast<uint32_t>(skip / base::kSystemPage)};
      }
      const uint64_t last = base::round_up(static_cast<uint64_t>(from + size_bytes - part.address),
                                           base::kSystemPage);
      if (part.size_bytes > last) part.size_bytes = last;
      result = cache.frames->allow_write(cache.frames->reports_written() ? part : piece);
      const uint64_t flags = cache.frames->has_write_faults() ? PageValue::kDirty : 0;
      OC_ASSERT(word.glance() == PageState::kBusy);
      word.update([&](PageValue v) { return v.with(PageState::kResident).plus(flags); });
      if (result != 0) unpin_page(cache, page);
    }
    if (result != 0) {
      pager_.pinning_bytes.fetch_sub(claimed);
      for (uint64_t p = first; p < page; ++p) unpin_page(cache, p);
      return transfer_error(cache, result, "pin page " + std::to_string(page) + " of " + cache.uri,
                            WriteStall::remedy(result));
    }
  }
  pager_.pinning_bytes.fetch_sub(claimed);
  return {};
}

Status Pins::unpin(View& view, const std::byte* from, uint64_t size_bytes) {
  OC_CHECK(size_bytes != 0);
  OC_ASSERT(view.contains(from));
  PageCache& cache = *view.cache;
  const uint64_t first = view.page_of(from), end = view.page_of(from + size_bytes - 1) + 1;
  for (uint64_t page = first; page < end; ++page)
    if (cache.shared != nullptr ? !shared_.is_pinned(cache, page)
                                : cache.words[page].load().pins() == 0)
      return Error{
          EINVAL, "unpin page " + std::to_string(page) + " of " + cache.uri + ": it is not pinned"};
  for (uint64_t page = first; page < end; ++page) unpin_page(cache, page);
  return {};
}

}  // namespace outcore::paging
