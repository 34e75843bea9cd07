// Prefetch: fills ahead of the fault, many pages a transfer. See engine.h.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/base/assert.h"
#include "core/paging/engine.h"
#include "core/region/address_map.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::AddressMap;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

constexpr uint32_t kRunsMax = 8;
// What may lie between two pages of a run: to read it as well costs less than a transfer of its own
// ("data sieving": Thakur et al., Frontiers '99).
constexpr uint64_t kGapBytesMax = 12 << 10;

// Run: pages, equally spaced, that travel through one buffer.
struct Run {
  uint64_t first = 0;
  uint64_t stride = 1;
  uint32_t pages = 0;
  uint32_t first_frame = 0;  // index of its first page's frame
  bool is_written = false;   // filled for writes
  std::span<std::byte> buffer;
  int result = 0;
};

}  // namespace

void Engine::prefetch(View& view, uint64_t first, int64_t stride, uint64_t count) {
  Space& space = *static_cast<Space*>(view.space);
  OC_CHECK(stride != 0);
  const uint64_t at_once =
      std::max<uint64_t>(pager_.bounce.shape().chunk_bytes / space.page_bytes, 1);
  while (count > 0) {
    const uint64_t n = std::min(count, at_once);
    view.users.fetch_add(1, std::memory_order_relaxed);
    if (!queue_.push({&view, first, stride, n, Errand::kHint, false, 0})) {
      AddressMap::let_go(&view);
      space.counters.add(Counter::prefetch_dropped, count);
      return;
    }
    first += static_cast<uint64_t>(stride) * n;
    count -= n;
  }
}

bool Engine::run_prefetch() {
  PrefetchRequest request;
  if (!queue_.pop(&request)) return false;
  View& view = *request.view;
  OC_CHECK(view.users.load() != 0);
  switch (request.errand) {
    case Errand::kHint:
      fill_ahead(view, request.first, request.stride, request.count);
      break;
    case Errand::kDemand:
      // Demands are repeated: those whose time is up must not each wait for memory in turn.
      // Nor may one wait for a page in other hands: a change of views, which holds pages, waits for
      // those behind it in the queue. Whoever demands waits for the page, and demands again.
      if (Space& space = *static_cast<Space*>(view.space);
          os::now_ns() <= request.until_ns && space.claim(request.first))
        static_cast<void>(
            filler_.fill(space, view, request.first, request.is_write, Caller::kThread));
      break;
    case Errand::kShareFrames:
      static_cast<Space*>(view.space)->share_frames();
      break;
  }
  AddressMap::let_go(&view);
  return true;
}

void Engine::io_loop() {
  while (!pager_.is_stopping.load(std::memory_order_acquire)) {
    const uint32_t changes = queue_.changes();
    if (!run_prefetch()) queue_.wait_for_change(changes);
  }
}

// Ahead: one request's fills. Pages begun (Filling, with a frame) are gathered in runs; when the
// buffers are used up, or at the end, all runs are read in one batch and installed.
class Ahead {
 public:
  // `run_bytes`: how long runs may become. `frames`: room for the frames of the pages that are
  // gathered; the caller's, who may have little stack.
  Ahead(Engine& engine, Space& space, View& view, Caller caller, Counter counter,
        uint64_t run_bytes, std::span<uint32_t> frames)
      : engine_(engine),
        space_(space),
        view_(view),
        caller_(caller),
        counter_(counter),
        run_bytes_(std::max(space.page_bytes, run_bytes)),
        frame_(frames) {}

  // REQUIRES: the page is Filling and ours, with this frame; is_written only of system pages.
  void add(uint64_t page, uint32_t frame, bool is_written = false) {
    OC_CHECK(frame < engine_.pager().frames.count());
    OC_CHECK(space_.words[page].glance() == PageState::kFilling);
    OC_CHECK(!is_written || space_.page_bytes == base::kSystemPage);
    if (page_count_ == frame_.size() ||
        (!extends(page, is_written) && !open_run(page, is_written))) {
      finish();
      OC_CHECK(open_run(page, is_written));
    }
    OC_CHECK(page_count_ < frame_.size());
    OC_CHECK(run_count_ != 0);
    frame_[page_count_++] = frame;
    ++run_[run_count_ - 1].pages;
  }

  void finish() {
    read_all();
    for (uint32_t i = 0; i < run_count_; ++i) {
      install(run_[i]);
      engine_.pager().bounce.give(run_[i].buffer);
    }
    run_count_ = page_count_ = 0;
  }

 private:
  // Whether the last run can take the page; its second page sets its stride.
  bool extends(uint64_t page, bool is_written) {
    if (run_count_ == 0) return false;
    Run& last = run_[run_count_ - 1];
    if (page <= last.first || last.is_written != is_written) return false;
    const uint64_t span_bytes = (page - last.first + 1) * space_.page_bytes;
    if (span_bytes > last.buffer.size()) return false;
    if (last.pages == 1) {
      const uint64_t stride = page - last.first;
      const uint64_t gap_bytes = (stride - 1) * space_.page_bytes;
      if (gap_bytes > (space_.traits.can_read_while_written ? kGapBytesMax : 0)) return false;
      last.stride = stride;
    }
    return page == last.first + last.pages * last.stride;
  }
  uint64_t span_bytes(const Run& run) const {
    return ((run.pages - 1) * run.stride + 1) * space_.page_bytes;
  }

  bool open_run(uint64_t page, bool is_written) {
    if (run_count_ == kRunsMax) return false;
    // The first may wait for a buffer: this thread holds none. A later one must not.
    const std::span<std::byte> buffer = run_count_ == 0
                                            ? engine_.pager().bounce.take(run_bytes_)
                                            : engine_.pager().bounce.try_take(run_bytes_);
    if (buffer.empty()) return false;
    OC_CHECK(buffer.size() >= space_.page_bytes);
    run_[run_count_++] = {page, 1, 0, page_count_, is_written, buffer, 0};
    return true;
  }

  void read_all() {
    StoreRequest request[kRunsMax];
    uint32_t of_run[kRunsMax], requests = 0;
    for (uint32_t i = 0; i < run_count_; ++i) {
      Run& run = run_[i];
      const uint64_t start = run.first * space_.page_bytes, bytes = span_bytes(run);
      OC_CHECK(run.pages != 0);
      OC_CHECK(bytes <= run.buffer.size());
      const uint64_t stored = space_.stored_bytes(start, bytes);
      OC_CHECK(stored <= bytes);
      const bool is_hole = stored == 0 || space_.store.load()->is_hole(start, stored);
      std::memset(run.buffer.data() + (is_hole ? 0 : stored), 0, bytes - (is_hole ? 0 : stored));
      if (is_hole) continue;
      of_run[requests] = i;
      request[requests++] = {start, run.buffer.data(), static_cast<size_t>(stored), false, 0};
    }
    for (uint32_t begin = 0; begin < requests;) {
      const uint32_t at_once = space_.read_gate.enter(requests - begin);
      const std::span<StoreRequest> batch{request + begin, at_once};
      if (caller_ == Caller::kFault) {  // transfer() may allocate
        for (StoreRequest& r : batch)
          r.result = space_.store.load()->read(r.offset, {r.bytes, r.size_bytes});
      } else {
        space_.store.load()->transfer(batch);
      }
      space_.read_gate.leave(at_once);
      begin += at_once;
    }
    for (uint32_t i = 0; i < requests; ++i) {
      OC_ASSERT(request[i].result <= 0);
      run_[of_run[i]].result = request[i].result;
      space_.counters.add(Counter::read_requests, 1);
      space_.counters.add(Counter::read_bytes, request[i].size_bytes);
    }
  }

  // Neighbours in one step, others page by page.
  void install(Run& run) {
    const uint32_t at_once = run.stride == 1 ? run.pages : 1;
    for (uint32_t i = 0; i < run.pages; i += at_once) {
      const uint64_t first = run.first + i * run.stride;
      const Piece piece = view_.pieces_of(first, first + at_once);
      OC_CHECK(piece.size_bytes != 0);
      OC_CHECK(piece.size_bytes <= at_once * space_.page_bytes);
      const std::byte* bytes = run.buffer.data() + (piece.offset - run.first * space_.page_bytes);
      for (uint32_t page = 0; run.is_written && page < at_once; ++page)
        engine_.filler_.begin(space_, first + page, frame_[run.first_frame + i + page]);
      const int result =
          run.result != 0 ? run.result : space_.frames->install(piece, bytes, run.is_written);
      for (uint32_t page = 0; page < at_once; ++page)
        finish_page(first + page, frame_[run.first_frame + i + page], result, run);
    }
  }

  void finish_page(uint64_t page, uint32_t frame, int result, const Run& run) {
    os::Frames& frames = *space_.frames;
    if (result == 0) {
      if (frames.can_share()) view_.set_shown(page, true);
      space_.counters.add(counter_, 1);
      engine_.filler_.finish(
          space_, page, frame, 0,
          PageValue(run.is_written && frames.has_write_faults() ? PageValue::kDirty : 0));
      return;
    }
    // Nobody asked for it yet: whoever touches it tries again, and is told why it fails.
    engine_.filler_.undo(space_, view_.piece_of(page), page, run.result == 0);
    engine_.supply_.release(space_, frame);
    space_.leave(page);
    frames.wake(view_.piece_of(page));
  }

  Engine& engine_;
  Space& space_;
  View& view_;
  const Caller caller_;
  const Counter counter_;
  const uint64_t run_bytes_;
  Run run_[kRunsMax];
  uint32_t run_count_ = 0;
  const std::span<uint32_t> frame_;
  uint32_t page_count_ = 0;
};

// Larger pages, and those that the view shows in part, are filled one by one.
bool Engine::travels_in_runs(const Space& space, const View& view, uint64_t page) const {
  if (space.page_bytes > pager_.bounce.shape().chunk_bytes) return false;
  return !space.frames->can_share() || view.piece_of(page).size_bytes == space.page_bytes;
}

// The page that is touched, and up to `count` - 1 neighbours in the direction of the reader, in one
// transfer: a reader that is faster than the prefetch threads pays one fault for all of them.
// REQUIRES: the page is Filling and ours.
int Engine::fill_along(Space& space, View& view, uint64_t page, int64_t stride, uint32_t count,
                       Caller caller) {
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
    if (next < view.first_page() || next >= view.end_page() || !travels_in_runs(space, view, next))
      break;
    if (!space.claim(next)) break;
    if (supply_.allocate(space, caller, 0, &frame[n]) == 0) continue;
    space.leave(next);
    break;
  }
  OC_CHECK(n <= kAlongMax);
  uint32_t gathered[kAlongMax];
  Ahead along(*this, space, view, caller, Counter::prefetch_fills,
              pager_.bounce.shape().chunk_bytes, gathered);
  for (uint32_t i = 0; i < n; ++i) {  // in the order of the store
    const uint32_t which = stride > 0 ? i : n - 1 - i;
    along.add(page + static_cast<uint64_t>(stride * which), frame[which]);
  }
  along.finish();
  space.counters.add(Counter::fills, 1);
  return -EAGAIN;  // it is there, or absent again because the transfer failed: look
}

void Engine::fill_many(View& view, std::span<const os::Touch> touches) {
  Space& space = *static_cast<Space*>(view.space);
  if (!space.traits.is_fault_safe) return;
  uint32_t gathered[16];
  Ahead many(*this, space, view, Caller::kThread, Counter::fills, base::kSystemPage, gathered);
  for (const os::Touch& touch : touches) {
    if (touch.is_write && !view.is_writable) continue;
    const uint64_t page = view.page_of(touch.address);
    if (!space.claim(page)) continue;
    int64_t stride = 0;
    uint32_t frame = budget::kNone;
    const bool is_left = !travels_in_runs(space, view, page) ||
                         read_ahead(space, view, page, false, &stride) > 1 ||
                         supply_.allocate(space, Caller::kThread, 0, &frame) != 0;
    if (is_left)
      space.leave(page);
    else
      many.add(page, frame, touch.is_write && space.page_bytes == base::kSystemPage);
  }
  many.finish();
}

void Engine::fill_ahead(View& view, uint64_t first, int64_t stride, uint64_t count) {
  Space& space = *static_cast<Space*>(view.space);
  OC_CHECK(stride != 0);
  OC_CHECK(count != 0);
  uint32_t gathered[512];
  Ahead ahead(*this, space, view, Caller::kThread, Counter::prefetch_fills,
              pager_.bounce.shape().chunk_bytes, gathered);
  const uint64_t begin = view.first_page(), end = view.end_page();
  uint64_t page = first, dropped = 0;
  if (stride < 0) {  // in the order of the store
    while (count > 0 && page + static_cast<uint64_t>(stride) * (count - 1) >= end) --count;
    page += static_cast<uint64_t>(stride) * (count - 1);
    stride = -stride;
  }
  // Several pages are claimed at once, before anything else: two threads that walk over the same
  // pages would otherwise take them in turns, and read all of them twice.
  constexpr uint64_t kClaimsMax = 32;
  uint64_t claimed = 0;  // from `page` on
  for (uint64_t i = 0; i < count; ++i, page += static_cast<uint64_t>(stride)) {
    if (page < begin) continue;
    if (claimed == 0) {
      if (page >= end || space.is_frozen.load(std::memory_order_acquire)) break;
      for (uint64_t next = page;
           claimed < std::min(kClaimsMax, count - i) && next < end && space.claim(next);
           next += static_cast<uint64_t>(stride))
        ++claimed;
    }
    if (claimed == 0) {
      const region::PageValue seen = space.words[page].load();
      if (seen.state() == PageState::kResident && space.frames->can_share() &&
          !view.is_shown(page)) {
        ahead.finish();  // whoever waits must hold no buffer
        static_cast<void>(resolve_resident(space, view, page, nullptr, false, seen));
      }
      ++dropped;
      continue;
    }
    --claimed;
    if (!travels_in_runs(space, view, page)) {
      ahead.finish();
      if (filler_.fill(space, view, page, false, Caller::kThread) == 0) continue;
    } else {
      uint32_t frame = budget::kNone;
      if (supply_.allocate(space, Caller::kThread, 1'000'000, &frame) == 0) {
        ahead.add(page, frame);
        continue;
      }
      space.leave(page);
      dropped += count - i;
    }
    for (; claimed > 0; --claimed) space.leave(page += static_cast<uint64_t>(stride));
    break;
  }
  OC_CHECK(claimed == 0);
  ahead.finish();
  if (dropped != 0) space.counters.add(Counter::prefetch_dropped, dropped);
}

}  // namespace outcore::paging
