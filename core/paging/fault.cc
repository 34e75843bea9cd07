// The fault path: what a touch of an absent, leaving or protected page leads to. See engine.h.
//
// Nothing here allocates or takes a lock that a program could hold; it touches no managed memory.
#include <unistd.h>

#include <cerrno>

#include "core/base/assert.h"
#include "core/os/signal_delivery.h"
#include "core/paging/engine.h"
#include "core/paging/failed_pages.h"
#include "core/paging/fault_reason.h"
#include "core/prefetch/table_pool.h"

namespace outcore::paging {

using metrics::Counter;
using os::FaultOutcome;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

constexpr int kTouchAgain = -ERESTART;  // no store says that

// The last fault that found its page resident: the same again means that the kernel took the
// mapping away.
thread_local const std::byte* last_resident_touch = nullptr;
constinit thread_local uint32_t thread_number = 0;

// What was brought in ahead and is not read yet may fill a third of the memory, of all streams
// together: half of it, and STREAM's kernels in 4 threads read a third of their pages twice.
constexpr uint64_t kAheadShare = 3;

// Whoever puts others in the place of the view may be waiting for the processor.
int come_again() {
  os::yield();
  return kTouchAgain;
}

// Failed for want of room or time, not by the read: a later touch may do better.
bool is_passing(PageValue failed) {
  const auto error = static_cast<int>(failed.frame());
  return error == ENOMEM || error == ETIMEDOUT || error == ENOSPC || error == EDQUOT;
}

}  // namespace

FaultOutcome Engine::fault(View& view, std::byte* address, bool is_write) {
  OC_ASSERT(view.contains(address));
  if ((is_write && !view.is_writable) || view.is_closed.load(std::memory_order_relaxed))
    return FaultOutcome::kNotOurs;
  Space& space = *static_cast<Space*>(view.space);
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

int Engine::bring_in(View& view, uint64_t page, std::byte* address, bool is_write, Caller caller) {
  Space& space = *static_cast<Space*>(view.space);
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
        const int result = resolve_resident(space, view, page, address, is_write, seen);
        if (result != -EAGAIN && !supply_.can_repeat(result, caller, &tries)) return result;
        break;
      }
      case PageState::kAbsent:
        if (space.is_frozen.load(std::memory_order_acquire)) {
          os::yield();
          // Event threads must go on reading: of other faults, and of what is done to the frozen.
          if (space.delivery == Delivery::kMessages && caller == Caller::kFault) return kTouchAgain;
          // What is mapped there now is not ours: the touch finds it.
          if (space.is_given_up.load(std::memory_order_acquire)) return kTouchAgain;
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
          const uint32_t along = read_ahead(space, view, page, false, &stride);
          if (along > 1 && pager_.bounce.has_chunk() && travels_in_runs(space, view, page)) {
            const int result = fill_along(space, view, page, stride, along, caller);
            if (result != -EAGAIN) return result;
            break;
          }
        }
        return filler_.fill(space, view, page, is_write, caller);
      case PageState::kLeaving: {
        if (space.frames->leaving_is_readable() && !is_write) return 0;
        const int result = rescue(space, view, page, address, is_write, seen);
        if (result != -EAGAIN && !supply_.can_repeat(result, caller, &tries)) return result;
        break;
      }
      case PageState::kFailed:
        // Somebody else waited in vain. That is our answer once we have waited as long ourselves:
        // a thread that began before memory came may fail the page long after.
        if (is_passing(seen) && is_within_wait(&retried_ns) &&
            paging::retry_failed(space, page, page + 1))
          break;
        return -static_cast<int>(seen.frame());
      case PageState::kFilling:
        if (int64_t stride = 0; !is_ahead_asked) {
          read_ahead(space, view, page, true, &stride);
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

// The page is here. Either somebody else filled it meanwhile, or this view does not show it yet, or
// the first write must be let through. -EAGAIN: it changed, look again.
int Engine::resolve_resident(Space& space, View& view, uint64_t page, std::byte* address,
                             bool is_write, PageValue seen) {
  OC_CHECK(seen.state() == PageState::kResident);
  const auto is_shown_now = [&] { return !space.frames->can_share() || view.is_shown(page); };
  const auto must_allow_now = [&] {
    return is_write && address != nullptr && space.frames->has_write_faults();
  };
  // Written already: somebody else's fault let it through.
  const bool is_allowed = seen.has(PageValue::kDirty) && space.page_bytes == base::kSystemPage;
  if (is_shown_now() && (is_allowed || !must_allow_now())) {
    const bool is_sure = !space.frames->can_share() && !is_allowed;
    if (address == nullptr || is_sure || last_resident_touch != address) {
      last_resident_touch = address;
      return 0;
    }
    last_resident_touch = nullptr;
  }
  region::PageWord& word = space.words[page];
  if (!word.change(seen, seen.with(PageState::kBusy))) return -EAGAIN;
  // Asked again now that the page is ours: it may have gone and come back in the same frame,
  // through another view or in frames of another kind, and its word tells nothing of that.
  os::Frames& frames = *space.frames;
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
    space.counters.add(Counter::minor_faults, 1);
  }
  uint64_t flags = 0;
  if (result == 0 && must_allow) {
    result = make_writable(space, view, page, address);
    flags = PageValue::kDirty;
  }
  word.update([&](PageValue v) { return v.with(PageState::kResident).plus(flags); });
  if (result == 0) frames.wake(piece);
  return result;
}

int Engine::make_writable(Space& space, View& view, uint64_t page, std::byte* address) {
  OC_ASSERT(space.words[page].glance() == PageState::kBusy);
  Piece piece = view.piece_of(page);
  if (space.frames->reports_written()) {  // only the system page that is written
    const auto at = static_cast<uint64_t>(view.system_page_at(address) - piece.address);
    piece = {piece.address + at, piece.offset + at, base::kSystemPage, true,
             piece.first_subpage + static_cast<uint32_t>(at / base::kSystemPage)};
  }
  space.counters.add(Counter::write_faults, 1);
  note_late_write(space, view);
  return space.frames->allow_write(piece);
}

// A page that was filled for a read is written: a second fault, where the frames have write faults.
// If many pages have both, frames without are cheaper, though their fills and evictions are dearer
// (docs/internals/decisions/0004-frames-and-delivery.md). The pages are evicted in between, so only
// a few may be there.
void Engine::note_late_write(Space& space, View& view) {
  constexpr uint32_t kLook = 512, kFillsMax = 4 * kLook;
  constexpr uint64_t kResidentBytesMax = 64 << 20;
  if (!space.share_frames || space.frames->can_share()) return;
  if ((space.late_writes.fetch_add(1, std::memory_order_relaxed) + 1) % kLook != 0) return;
  if (space.fills_since_look.exchange(0) > kFillsMax) return;
  if (space.resident_bytes.load() > kResidentBytesMax || pager_.pinned_bytes.load() != 0) return;
  view.users.fetch_add(1, std::memory_order_relaxed);
  if (!queue_.push({&view, 0, 1, 0, Errand::kShareFrames, false, 0}))
    view.users.fetch_sub(1, std::memory_order_release);
}

// A leaving page is touched: it comes back as it was, without I/O, in every view that showed it.
// What was written stays written, unless its write-back is through (kCleaned); one still under way
// is repeated later.
int Engine::rescue(Space& space, View& view, uint64_t page, std::byte* address, bool is_write,
                   PageValue seen) {
  OC_CHECK(seen.state() == PageState::kLeaving);
  region::PageWord& word = space.words[page];
  if (!word.change(seen, seen.with(PageState::kBusy))) return -EAGAIN;
  os::Frames& frames = *space.frames;
  int result = 0;
  uint64_t flags = 0;
  if (frames.can_share()) {
    os::SubpageSet written;
    if (!frames.reports_written()) {
      if (seen.has(PageValue::kDirty)) written.add_range(0, os::SubpageSet::kCount);
    } else if (!seen.has(PageValue::kCleaned)) {
      space.look_at_written(page, &written);
    }
    view.set_shown(page, true);
    space.for_each_showing(page, [&](View& v) {
      const Piece piece = v.piece_of(page);
      if (const int r = frames.show(piece, written); r != 0) result = r;
      frames.wake(piece);
    });
  }
  if (result == 0 && is_write && address != nullptr && frames.has_write_faults()) {
    result = make_writable(space, view, page, address);
    flags = PageValue::kDirty;
  }
  space.counters.add(Counter::rescues, 1);
  pager_.shard_of(space, page).news.push(pager_.frames, seen.frame());
  word.update([&](PageValue v) {
    return v.with(PageState::kResident).minus(PageValue::kCleaned).plus(flags);
  });
  frames.wake(view.piece_of(page));
  return result;
}

// Whether the bound on waits has not passed since `start_ns`, which is set at the first call (0).
bool Engine::is_within_wait(uint64_t* start_ns) const {
  const uint64_t now_ns = os::now_ns();
  if (*start_ns == 0) *start_ns = now_ns;
  return now_ns - *start_ns <= pager_.options.wait_ns_max;
}

// Whoever changes the page will be done soon: a fill's read, a batch being unmapped. Sleep on its
// word. A cut may take as long as its store takes, and event threads must go on reading: false, and
// the touch comes again.
bool Engine::wait_for_page(Space& space, uint64_t page, PageValue seen, Caller caller) {
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
int Engine::demand(View& view, uint64_t page, bool is_write, uint64_t* start_ns) {
  Space& space = *static_cast<Space*>(view.space);
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
  if (!queue_.push({&view, page, 1, 1, Errand::kDemand, is_write, until_ns})) {
    view.users.fetch_sub(1, std::memory_order_release);
    os::yield();
    return -EAGAIN;
  }
  space.words[page].wait_while(seen, sleep_ns);
  return -EAGAIN;
}

prefetch::StreamTable::Advice Engine::ask_streams(const Space& space,
                                                  prefetch::StreamTable::Miss& miss) {
  if (thread_number == 0) thread_number = static_cast<uint32_t>(::gettid());
  prefetch::TablePool::Mine mine(tables_, thread_number);
  if (!mine) return {};
  prefetch::StreamTable& streams = mine.table();
  miss.readers = readers_.note(&mine.round());
  const uint64_t stream_count = uint64_t{std::max(streams.count(), 1u)} * miss.readers;
  const uint64_t window_bytes = std::min({pager_.options.readahead_bytes, pager_.budget.limit() / 8,
                                          pager_.budget.limit() / kAheadShare / stream_count});
  miss.window_max = static_cast<uint32_t>(window_bytes / space.page_bytes);
  if (miss.window_max < 2) return {};
  // Where readers are faster than the prefetch threads, a hint that has to wait long would bring
  // in what was read, and evicted, in the meantime: then only what this thread fills itself.
  const uint64_t hints = queue_.hints_waiting();
  miss.has_hints = hints != 0;
  if (hints >= kHintsMax) miss.window_max = std::min(miss.window_max, std::max(miss.along_max, 1u));
  return streams.on_miss(miss);
}

// Issues what the thread's streams advise. Returns how many neighbours of a sequential reader may
// be filled along with the page, at this touch.
uint32_t Engine::read_ahead(Space& space, View& view, uint64_t page, bool is_in_flight,
                            int64_t* stride) {
  const Advice advice = view.advice.load(std::memory_order_relaxed);
  if (pager_.options.readahead_bytes == 0 || advice == Advice::kRandom) return 0;
  // There are a few large buffers: who would have to wait for one reads its page alone.
  const uint64_t along_bytes =
      pager_.bounce.has_chunk() ? std::min(kAlongBytesMax, pager_.bounce.shape().chunk_bytes) : 0;
  prefetch::StreamTable::Miss miss;
  miss.space_id = space.id;
  miss.page = page;
  miss.page_end = view.end_page();
  miss.along_max = static_cast<uint32_t>(std::max(along_bytes / space.page_bytes, uint64_t{1}) - 1);
  miss.is_sequential = advice == Advice::kSequential;
  miss.is_in_flight = is_in_flight;
  miss.absent = {&space, [](const void* of, uint64_t next) {
                   return static_cast<const Space*>(of)->words[next].glance() == PageState::kAbsent;
                 }};
  const prefetch::StreamTable::Advice ahead = ask_streams(space, miss);
  OC_CHECK(ahead.along <= miss.along_max);
  const bool is_neighbourly = ahead.stride == 1 || ahead.stride == -1;
  const uint32_t along = is_neighbourly ? ahead.along + 1 : 0;
  *stride = ahead.stride;
  for (uint32_t i = 0; i < ahead.run_count; ++i) {
    prefetch::PageRun run = ahead.run[i];
    if (along > 1 && run.first_page == page + static_cast<uint64_t>(ahead.stride)) {
      const uint32_t ours = std::min(run.count, along - 1);  // this thread's own share
      run.first_page += static_cast<uint64_t>(ahead.stride * ours);
      run.count -= ours;
    }
    if (run.count == 0) continue;
    if (queue_.hints_waiting() < kHintsMax)
      prefetch(view, run.first_page, run.stride, run.count);
    else
      space.counters.add(Counter::prefetch_dropped, run.count);
  }
  return along;
}

}  // namespace outcore::paging
