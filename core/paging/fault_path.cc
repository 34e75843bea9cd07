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

// Whether the page is being taken out, and nobody has it yet: then it is not brought back. Who can
// sleeps for a moment, as whoever takes it out needs a processor.
[[gnu::noinline]] bool is_leaving_for_good(PageCache& cache, uint64_t page, PageValue seen) {
  if (!cache.is_closing(page)) return false;
  if (seen.state() != PageState::kResident && seen.state() != PageState::kLeaving &&
      seen.state() != PageState::kAbsent)
    return false;
  if (cache.delivery == Delivery::kMessages)
    os::yield();  // event threads must go on reading
  else
    cache.words[page].wait_while(seen, 1'000'000);
  return true;
}

// Whether a touch of a frozen cache is repeated, rather than waited for here.
bool must_leave_frozen(const PageCache& cache, Caller caller) {
  os::yield();
  // Event threads must go on reading: of other faults, and of what is done to the frozen.
  if (cache.delivery == Delivery::kMessages && caller == Caller::kFault) return true;
  // What is mapped there now is not ours: the touch finds it.
  return cache.is_handed_to_kernel.load(std::memory_order_acquire);
}

// Of a buffer's pages, those of the run that are in memory, and among them this one; none if it is
// not.
TouchRuns::Run present_around(const View& view, uint64_t page, TouchRuns::Run run) {
  unsigned char seen[TouchRuns::kPagesMax] = {};
  run.first = std::max(run.first, view.offset / view.page_bytes);
  const os::Piece piece = view.pieces_of(run.first, run.end);
  const uint64_t shown = piece.size_bytes / view.page_bytes;
  OC_CHECK(shown <= TouchRuns::kPagesMax);
  if (run.first + shown <= page) return {};
  // Where a neighbour is mapped no more, the page is asked for alone.
  if (os::look_up_presence(piece.address, piece.size_bytes, seen) != 0)
    return shown == 1 ? TouchRuns::Run{} : present_around(view, page, {page, page + 1});
  const auto is_there = [&](uint64_t p) { return (seen[p - run.first] & 1) != 0; };
  if (!is_there(page)) return {};
  TouchRuns::Run there{page, page + 1};
  while (there.end < run.first + shown && is_there(there.end)) ++there.end;
  while (there.first > run.first && is_there(there.first - 1)) --there.first;
  return there;
}

// Failed for want of room or time, not by the read: a later touch may do better.
bool is_passing(PageValue failed) {
  const auto error = static_cast<int>(failed.frame());
  return error == ENOMEM || error == ETIMEDOUT || error == ENOSPC || error == EDQUOT;
}

}  // namespace

FaultOutcome FaultPath::fault(View& view, std::byte* address, bool is_write, uint64_t site,
                              uint64_t heard_ns) {
  OC_ASSERT(view.contains(address));
  if ((is_write && !view.is_writable) || view.is_closed.load(std::memory_order_relaxed))
    return FaultOutcome::kNotOurs;
  PageCache& cache = *view.cache;
  const uint64_t start_ns = os::now_ns();
  const uint64_t page = view.page_of(address);
  cache.counters.add(Counter::faults, 1);
  const int result =
      bring_in(view, page, address, {is_write, heard_ns}, Caller::kFault, site, nullptr);
  const uint64_t took_ns = os::now_ns() - start_ns;
  cache.counters.fault_took(took_ns);
  if (cache.entry.is_watched()) {
    // A message tells the thread, not the instruction.
    const bool is_known = cache.delivery != Delivery::kMessages;
    cache.entry.publish_fault(page, is_known ? site : 0, took_ns);
  }
  if (result == 0 || result == kTouchAgain) return FaultOutcome::kDone;
  if (cache.delivery == Delivery::kMessages && !poison_page(view, page, address, result))
    return FaultOutcome::kDone;  // changed meanwhile: the touch comes again
  explain(cache, page, address, result);
  if (view.on_error == OnError::kAbort) end_for_fault("");
  return FaultOutcome::kFailed;
}

int FaultPath::bring_in(View& view, uint64_t page, std::byte* address, Wanted wanted, Caller caller,
                        uint64_t site, CallWait* wait) {
  PageCache& cache = *view.cache;
  OC_CHECK(page < cache.page_count());
  if (cache.shared != nullptr) return bring_in_shared(view, page, wanted, caller, site, wait);
  region::PageWord& word = cache.words[page];
  bool is_ahead_asked = caller != Caller::kFault;
  uint32_t tries = 0;
  // Since a prefetch thread was asked for the page; since it is tried again, others having failed.
  std::optional<os::WaitLimit> demanded, retried;
  for (;;) {
    if (view.is_replaced.load(std::memory_order_acquire)) return come_again();
    PageValue seen = word.load();
    const bool is_write = wanted.writes(cache, page);  // after the word: a change of it is seen
    const bool is_here =
        seen.state() == PageState::kResident || seen.state() == PageState::kLeaving;
    if (wait != nullptr && !is_here) wait->begin();
    if (caller == Caller::kFault && is_leaving_for_good(cache, page, seen)) return kTouchAgain;
    switch (seen.state()) {
      case PageState::kResident: {
        const int result = remapper_.resolve_resident(cache, view, page, address, is_write, seen);
        if (result != -EAGAIN && !supply_.can_repeat(result, caller, &tries)) return result;
        break;
      }
      case PageState::kAbsent:
        if (cache.is_frozen.load(std::memory_order_acquire)) {
          if (must_leave_frozen(cache, caller)) return kTouchAgain;
          break;
        }
        if (caller == Caller::kFault && !cache.traits.is_fault_safe) {
          const int result = demand(view, page, is_write, site, &demanded);
          if (result != -EAGAIN) return result;
          break;
        }
        if (!cache.claim(page)) break;
        if (const int result = fill_claimed(cache, view, page, wanted.writes(cache, page), caller,
                                            site, !is_ahead_asked);
            result != -EAGAIN)
          return result;
        is_ahead_asked = true;
        break;
      case PageState::kLeaving: {
        if (cache.frames->leaving_is_readable() && !is_write) return 0;
        const int result = remapper_.rescue(cache, view, page, address, is_write, seen);
        if (result != -EAGAIN && !supply_.can_repeat(result, caller, &tries)) return result;
        break;
      }
      case PageState::kFailed:
        // Somebody else waited in vain. That is our answer once we have waited as long ourselves:
        // a thread that began before memory came may fail the page long after.
        if (is_passing(seen) && is_within_wait(&retried) && retry_failed(cache, page, page + 1))
          break;
        return -static_cast<int>(seen.frame());
      case PageState::kFilling:
        if (int64_t stride = 0; !is_ahead_asked) {
          readahead_.read_ahead(cache, view, page, true, &stride);
          is_ahead_asked = true;
        }
        [[fallthrough]];
      case PageState::kBusy:
      case PageState::kUnmapping:
      case PageState::kDropping:
      case PageState::kFrozen:
        if (!wait_for_page(cache, page, seen, caller)) return kTouchAgain;
        break;
    }
  }
}

// A page of a buffer: whether it is there only the kernel knows, and others may take it away again.
int FaultPath::bring_in_shared(View& view, uint64_t page, Wanted wanted, Caller caller,
                               uint64_t site, CallWait* wait) {
  PageCache& cache = *view.cache;
  OC_CHECK(cache.traits.is_fault_safe);
  for (bool is_first_try = caller == Caller::kFault;; is_first_try = false) {
    if (view.is_replaced.load(std::memory_order_acquire)) return come_again();
    if (cache.is_frozen.load(std::memory_order_acquire) || !cache.shared->enter()) {
      if (must_leave_frozen(cache, caller)) return kTouchAgain;
      continue;
    }
    const bool is_frozen = cache.is_frozen.load(std::memory_order_seq_cst);
    const bool is_written = view.is_writable.load(std::memory_order_relaxed);
    const bool is_write = wanted.writes(cache, page);
    int result = -EAGAIN;
    TouchRuns::Run run{page, page + 1};
    if (is_first_try && is_written) {
      run = (is_write ? cache.writes->written : cache.writes->read).next(page);
      run.end = std::min(run.end, cache.page_count());
    }
    const TouchRuns::Run there = !is_frozen && (is_written || wait != nullptr)
                                     ? present_around(view, page, run)
                                     : TouchRuns::Run{};
    if (wait != nullptr && there.end == 0) wait->begin();
    if (there.end != 0)
      result = 0, run = there;  // others have brought it in, or it was mapped to be read
    else if (!is_frozen)
      result = fill_claimed(cache, view, page, false, caller, site, is_first_try);
    if (there.end == 0) run = {page, page + 1};
    if (result == 0 && is_write)
      result = writer_.allow(cache, view, page, run);
    else if (result == 0 && is_written &&
             cache.frames->show(view.pieces_of(run.first, run.end), {}) == -EFAULT)
      result = -EAGAIN;  // it has left already
    cache.shared->leave();
    if (result != -EAGAIN) return result;
  }
}

// The page is ours: it is filled alone, or together with what its reader will want next, at the
// first try. 0: it is there. -EAGAIN: look again. REQUIRES: the page is Filling and ours, or a
// buffer's.
int FaultPath::fill_claimed(PageCache& cache, View& view, uint64_t page, bool is_write,
                            Caller caller, uint64_t site, bool is_first_try) {
  if (is_first_try) {
    int64_t stride = 0;
    const uint32_t along = readahead_.read_ahead(cache, view, page, false, &stride);
    if (along > 1 && clusters_.may_fill(cache, view, page))
      return clusters_.fill_along(cache, view, page, stride, along, is_write, caller);
    if (stride == 0) {
      const ClusterFiller::Cluster cluster =
          clusters_.fill_around(cache, view, page, is_write, caller, site);
      readahead_.on_cluster(cache, cluster.first, cluster.end);
      return cluster.result;
    }
    clusters_.note_miss(cache, page);
  }
  return clusters_.fill_alone(cache, view, page, is_write, caller, is_first_try);
}

// Whether the bound on waits has not passed since the first call, which sets it: once is always.
bool FaultPath::is_within_wait(std::optional<os::WaitLimit>* limit) const {
  if (limit->has_value()) return !(*limit)->is_over();
  limit->emplace(pager_.options.wait_ns_max);
  return true;
}

// Whoever changes the page will be done soon: a fill's read, a batch being unmapped. Sleep on its
// word. A cut may take as long as its store takes, and event threads must go on reading: false, and
// the touch comes again.
bool FaultPath::wait_for_page(PageCache& cache, uint64_t page, PageValue seen, Caller caller) {
  const bool is_short = seen.state() == PageState::kFrozen && caller == Caller::kFault &&
                        cache.delivery == Delivery::kMessages;
  const uint64_t start_ns = os::now_ns();
  cache.words[page].wait_while(seen, is_short ? 1'000'000 : 100'000'000);
  cache.counters.add(Counter::waits_for_page, 1);
  cache.counters.add(Counter::wait_for_page_ns, os::now_ns() - start_ns);
  return !is_short || cache.words[page].load().state() != PageState::kFrozen;
}

// The store must not be called in a signal handler: a prefetch thread fills, we wait for the page
// to change. It may be filled and gone again before we look, or its fill may find no memory: so the
// demand is repeated, within a bound that counts from the first. -EAGAIN: look again.
int FaultPath::demand(View& view, uint64_t page, bool is_write, uint64_t site,
                      std::optional<os::WaitLimit>* limit) {
  PageCache& cache = *view.cache;
  OC_ASSERT(!cache.traits.is_fault_safe);
  // Not at once: until a prefetch thread has tried, what was found in vain may be over.
  if (limit->has_value() && pager_.stall.error() != 0) return pager_.stall.error();
  if (!is_within_wait(limit)) return -ETIMEDOUT;
  const PageValue seen = cache.words[page].load();
  if (seen.state() != PageState::kAbsent) return -EAGAIN;
  view.users.fetch_add(
      1, std::memory_order_relaxed);  // the queue's hold; ours keeps the view alive meanwhile
  // Less and less often: prefetch threads that wait for memory would find nothing else to do.
  const uint64_t sleep_ns =
      std::max<uint64_t>(10'000'000, std::min((*limit)->waited_ns() / 4, (*limit)->look_ns_max()));
  const uint64_t until_ns = os::now_ns() + std::max((*limit)->left_ns(), sleep_ns);
  if (!queue_.push({&view, page, 1, 1, PrefetchTask::kDemand, is_write, until_ns, site})) {
    view.users.fetch_sub(1, std::memory_order_release);
    os::yield();
    return -EAGAIN;
  }
  cache.words[page].wait_while(seen, sleep_ns);
  return -EAGAIN;
}

void FaultPath::fill_many(View& view, std::span<const os::Touch> touches) {
  PageCache& cache = *view.cache;
  if (!cache.traits.is_fault_safe || cache.shared != nullptr) return;
  uint32_t gathered[16];
  PageBatch many(pager_, supply_, filler_, cache, view, Caller::kThread, Counter::fills,
                 base::kSystemPage, gathered);
  for (const os::Touch& touch : touches) {
    if (touch.is_write && !view.is_writable) continue;
    const uint64_t page = view.page_of(touch.address);
    if (cache.is_closing(page) || !cache.claim(page)) continue;
    int64_t stride = 0;
    uint32_t frame = budget::kNone;
    const bool is_left = !PageBatch::can_add(pager_, cache, view, page) ||
                         readahead_.read_ahead(cache, view, page, false, &stride) > 1 ||
                         clusters_.wants_more(cache, view, page, touch.site) ||
                         supply_.allocate_frame(cache, Caller::kThread, 0, &frame) != 0;
    if (is_left)
      cache.abandon(page);
    else
      many.add(page, frame,
               touch.is_write && cache.page_bytes == base::kSystemPage &&
                   !cache.is_late_write(page, touch.heard_ns));
  }
  many.finish();
}

}  // namespace outcore::paging
