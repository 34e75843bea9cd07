#include "core/paging/fault_path.h"

#include <algorithm>
#include <cerrno>

#include "core/base/assert.h"
#include "core/os/wait.h"
#include "core/paging/failed_pages.h"
#include "core/paging/fault_reason.h"
#include "core/paging/page_batch.h"

namespace outcore::paging {

using metrics::Counter;
using os::FaultOutcome;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

constexpr int kTouchAgain = -ERESTART;  // no store says that

// Whoever puts others in the place of the view may be waiting for the processor.
int come_again() {
  os::yield();
  return kTouchAgain;
}

// Whether a touch of a frozen space is repeated, rather than waited for here.
bool must_leave_frozen(const PageCache& space, Caller caller) {
  os::yield();
  // Event threads must go on reading: of other faults, and of what is done to the frozen.
  if (space.delivery == Delivery::kMessages && caller == Caller::kFault) return true;
  // What is mapped there now is not ours: the touch finds it.
  return space.is_handed_to_kernel.load(std::memory_order_acquire);
}

// Failed for want of room or time, not by the read: a later touch may do better.
bool is_passing(PageValue failed) {
  const auto error = static_cast<int>(failed.frame());
  return error == ENOMEM || error == ETIMEDOUT || error == ENOSPC || error == EDQUOT;
}

}  // namespace

FaultOutcome FaultPath::fault(View& view, std::byte* address, bool is_write) {
  OC_ASSERT(view.contains(address));
  if ((is_write && !view.is_writable) || view.is_closed.load(std::memory_order_relaxed))
    return FaultOutcome::kNotOurs;
  PageCache& space = *static_cast<PageCache*>(view.space);
  const uint64_t start_ns = os::now_ns();
  const uint64_t page = view.page_of(address);
  space.counters.add(Counter::faults, 1);
  const int result = bring_in(view, page, address, is_write, Caller::kFault);
  space.counters.fault_took(os::now_ns() - start_ns);
  if (result == 0 || result == kTouchAgain) return FaultOutcome::kDone;
  if (space.delivery == Delivery::kMessages && !poison_page(view, page, address, result))
    return FaultOutcome::kDone;  // changed meanwhile: the touch comes again
  explain(space, page, address, result);
  if (view.on_error == OnError::kAbort) end_for_fault("");
  return FaultOutcome::kFailed;
}

int FaultPath::bring_in(View& view, uint64_t page, std::byte* address, bool is_write,
                        Caller caller) {
  PageCache& space = *static_cast<PageCache*>(view.space);
  OC_CHECK(page < space.page_count());
  region::PageWord& word = space.words[page];
  bool is_ahead_asked = caller != Caller::kFault;
  uint32_t tries = 0;
  uint64_t demanded_ns = 0;  // since when a prefetch thread is asked for the page; 0: it is not
  uint64_t retried_ns = 0;   // since when it is tried again, others having failed; 0: it is not
  for (;;) {
    if (view.is_replaced.load(std::memory_order_acquire)) return come_again();
    PageValue seen = word.load();
    switch (seen.state()) {
      case PageState::kResident: {
        const int result = remapper_.resolve_resident(space, view, page, address, is_write, seen);
        if (result != -EAGAIN && !supply_.can_repeat(result, caller, &tries)) return result;
        break;
      }
      case PageState::kAbsent:
        if (space.is_frozen.load(std::memory_order_acquire)) {
          if (must_leave_frozen(space, caller)) return kTouchAgain;
          break;
        }
        if (caller == Caller::kFault && !space.traits.is_fault_safe) {
          const int result = demand(view, page, is_write, &demanded_ns);
          if (result != -EAGAIN) return result;
          break;
        }
        if (!space.claim(page)) break;
        if (!is_ahead_asked) {
          is_ahead_asked = true;
          int64_t stride = 0;
          const uint32_t along = readahead_.read_ahead(space, view, page, false, &stride);
          if (along > 1 && pager_.bounce.has_chunk() &&
              PageBatch::can_take(pager_, space, view, page)) {
            const int result = fill_along(space, view, page, stride, along, caller);
            if (result != -EAGAIN) return result;
            break;
          }
        }
        return filler_.fill(space, view, page, is_write, caller);
      case PageState::kLeaving: {
        if (space.frames->leaving_is_readable() && !is_write) return 0;
        const int result = remapper_.rescue(space, view, page, address, is_write, seen);
        if (result != -EAGAIN && !supply_.can_repeat(result, caller, &tries)) return result;
        break;
      }
      case PageState::kFailed:
        // Somebody else waited in vain. That is our answer once we have waited as long ourselves:
        // a thread that began before memory came may fail the page long after.
        if (is_passing(seen) && is_within_wait(&retried_ns) && retry_failed(space, page, page + 1))
          break;
        return -static_cast<int>(seen.frame());
      case PageState::kFilling:
        if (int64_t stride = 0; !is_ahead_asked) {
          readahead_.read_ahead(space, view, page, true, &stride);
          is_ahead_asked = true;
        }
        [[fallthrough]];
      case PageState::kBusy:
      case PageState::kUnmapping:
      case PageState::kDropping:
      case PageState::kFrozen:
        if (!wait_for_page(space, page, seen, caller)) return kTouchAgain;
        break;
    }
  }
}

// Whether the bound on waits has not passed since `start_ns`, which is set at the first call (0).
bool FaultPath::is_within_wait(uint64_t* start_ns) const {
  const uint64_t now_ns = os::now_ns();
  if (*start_ns == 0) *start_ns = now_ns;
  return now_ns - *start_ns <= pager_.options.wait_ns_max;
}

// Whoever changes the page will be done soon: a fill's read, a batch being unmapped. Sleep on its
// word. A cut may take as long as its store takes, and event threads must go on reading: false, and
// the touch comes again.
bool FaultPath::wait_for_page(PageCache& space, uint64_t page, PageValue seen, Caller caller) {
  const bool is_short = seen.state() == PageState::kFrozen && caller == Caller::kFault &&
                        space.delivery == Delivery::kMessages;
  const uint64_t start_ns = os::now_ns();
  space.words[page].wait_while(seen, is_short ? 1'000'000 : 100'000'000);
  space.counters.add(Counter::waits_for_page, 1);
  space.counters.add(Counter::wait_for_page_ns, os::now_ns() - start_ns);
  return !is_short || space.words[page].load().state() != PageState::kFrozen;
}

// The store must not be called in a signal handler: a prefetch thread fills, we wait for the page
// to change. It may be filled and gone again before we look, or its fill may find no memory: so the
// demand is repeated, within a bound that counts from the first. -EAGAIN: look again.
int FaultPath::demand(View& view, uint64_t page, bool is_write, uint64_t* start_ns) {
  PageCache& space = *static_cast<PageCache*>(view.space);
  OC_ASSERT(!space.traits.is_fault_safe);
  // Not at once: until a prefetch thread has tried, what was found in vain may be over.
  if (*start_ns != 0 && pager_.stall.error() != 0) return pager_.stall.error();
  if (!is_within_wait(start_ns)) return -ETIMEDOUT;
  const PageValue seen = space.words[page].load();
  if (seen.state() != PageState::kAbsent) return -EAGAIN;
  view.users.fetch_add(
      1, std::memory_order_relaxed);  // the queue's hold; ours keeps the view alive meanwhile
  // Less and less often: prefetch threads that wait for memory would find nothing else to do.
  const uint64_t now_ns = os::now_ns();
  const uint64_t sleep_ns = std::max<uint64_t>(10'000'000, (now_ns - *start_ns) / 4);
  const uint64_t until_ns = std::max(*start_ns + pager_.options.wait_ns_max, now_ns + sleep_ns);
  if (!queue_.push({&view, page, 1, 1, PrefetchTask::kDemand, is_write, until_ns})) {
    view.users.fetch_sub(1, std::memory_order_release);
    os::yield();
    return -EAGAIN;
  }
  space.words[page].wait_while(seen, sleep_ns);
  return -EAGAIN;
}

// The page that is touched, and up to `count` - 1 neighbours in the direction of the reader, in one
// transfer: a reader that is faster than the prefetch threads pays one fault for all of them.
// REQUIRES: the page is Filling and ours.
int FaultPath::fill_along(PageCache& space, View& view, uint64_t page, int64_t stride,
                          uint32_t count, Caller caller) {
  OC_CHECK(stride == 1 || stride == -1);
  OC_CHECK(count > 1);
  OC_CHECK(space.words[page].glance() == PageState::kFilling);
  uint32_t frame[kAlongMax];
  if (const int result = supply_.allocate(
          space, caller, std::max<uint64_t>(pager_.options.wait_ns_max, 1), &frame[0]);
      result != 0) {
    space.leave(page);
    return result;
  }
  uint32_t n = 1;
  for (; n < std::min(count, kAlongMax); ++n) {
    const uint64_t next = page + static_cast<uint64_t>(stride * n);
    if (next < view.first_page() || next >= view.end_page() ||
        !PageBatch::can_take(pager_, space, view, next))
      break;
    if (!space.claim(next)) break;
    if (supply_.allocate(space, caller, 0, &frame[n]) == 0) continue;
    space.leave(next);
    break;
  }
  OC_CHECK(n <= kAlongMax);
  uint32_t gathered[kAlongMax];
  PageBatch along(pager_, supply_, filler_, space, view, caller, Counter::prefetch_fills,
                  pager_.bounce.shape().chunk_bytes, gathered);
  for (uint32_t i = 0; i < n; ++i) {  // in the order of the store
    const uint32_t which = stride > 0 ? i : n - 1 - i;
    along.add(page + static_cast<uint64_t>(stride * which), frame[which]);
  }
  along.finish();
  space.counters.add(Counter::fills, 1);
  return -EAGAIN;  // it is there, or absent again because the transfer failed: look
}

void FaultPath::fill_many(View& view, std::span<const os::Touch> touches) {
  PageCache& space = *static_cast<PageCache*>(view.space);
  if (!space.traits.is_fault_safe) return;
  uint32_t gathered[16];
  PageBatch many(pager_, supply_, filler_, space, view, Caller::kThread, Counter::fills,
                 base::kSystemPage, gathered);
  for (const os::Touch& touch : touches) {
    if (touch.is_write && !view.is_writable) continue;
    const uint64_t page = view.page_of(touch.address);
    if (!space.claim(page)) continue;
    int64_t stride = 0;
    uint32_t frame = budget::kNone;
    const bool is_left = !PageBatch::can_take(pager_, space, view, page) ||
                         readahead_.read_ahead(space, view, page, false, &stride) > 1 ||
                         supply_.allocate(space, Caller::kThread, 0, &frame) != 0;
    if (is_left)
      space.leave(page);
    else
      many.add(page, frame, touch.is_write && space.page_bytes == base::kSystemPage);
  }
  many.finish();
}

}  // namespace outcore::paging
