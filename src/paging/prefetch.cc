// Prefetch: fills ahead of the fault, many pages a transfer. See engine.h.
#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.h"
#include "paging/engine.h"
#include "region/address_map.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::AddressMap;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

constexpr uint32_t kRunsMax = 8, kPagesMax = 512;

// Run: neighbouring pages that travel through one buffer.
struct Run {
  uint64_t first = 0;
  uint32_t pages = 0;
  uint32_t first_frame = 0;  // index of its first page's frame
  std::span<std::byte> buffer;
  int result = 0;
};

}  // namespace

void Engine::prefetch(View& view, uint64_t first, int64_t stride, uint64_t count) {
  Space& space = *static_cast<Space*>(view.space);
  const uint64_t at_once = std::max<uint64_t>(bounce_.shape().chunk_bytes / space.page_bytes, 1);
  while (count > 0) {
    const uint64_t n = std::min(count, at_once);
    view.users.fetch_add(1, std::memory_order_relaxed);
    if (!queue_.push({&view, first, stride, n, false, false})) {
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
  if (request.is_demand)
    static_cast<void>(bring_in(view, request.first, nullptr, request.is_write, Caller::kThread));
  else
    fill_ahead(view, request.first, request.stride, request.count);
  AddressMap::let_go(&view);
  return true;
}

void Engine::io_loop() {
  while (!is_stopping_.load(std::memory_order_acquire)) {
    const uint32_t changes = queue_.changes();
    if (!run_prefetch()) queue_.wait_for_change(changes);
  }
}

// Ahead: one request's fills. Pages begun (Filling, with a frame) are gathered in runs; when the
// buffers are used up, or at the end, all runs are read in one batch and installed.
class Ahead {
 public:
  Ahead(Engine& engine, Space& space, View& view, Caller caller)
      : engine_(engine), space_(space), view_(view), caller_(caller) {}

  // REQUIRES: the page is Filling and ours, with this frame.
  void add(uint64_t page, uint32_t frame) {
    if (page_count_ == kPagesMax || (!extends(page) && !open_run(page))) {
      finish();
      OC_CHECK(open_run(page));
    }
    frame_[page_count_++] = frame;
    ++run_[run_count_ - 1].pages;
  }

  void finish() {
    read_all();
    for (uint32_t i = 0; i < run_count_; ++i) {
      install(run_[i]);
      engine_.bounce_.give(run_[i].buffer);
    }
    run_count_ = page_count_ = 0;
  }

 private:
  bool extends(uint64_t page) const {
    if (run_count_ == 0) return false;
    const Run& last = run_[run_count_ - 1];
    return last.first + last.pages == page &&
           (last.pages + 1) * space_.page_bytes <= last.buffer.size();
  }

  bool open_run(uint64_t page) {
    if (run_count_ == kRunsMax) return false;
    // The first may wait for a buffer: this thread holds none. A later one must not.
    const uint64_t wanted =
        std::max<uint64_t>(space_.page_bytes, engine_.bounce_.shape().chunk_bytes);
    const std::span<std::byte> buffer =
        run_count_ == 0 ? engine_.bounce_.take(wanted) : engine_.bounce_.try_take(wanted);
    if (buffer.empty()) return false;
    run_[run_count_++] = {page, 0, page_count_, buffer, 0};
    return true;
  }

  void read_all() {
    StoreRequest request[kRunsMax];
    uint32_t of_run[kRunsMax], requests = 0;
    const uint64_t store_bytes = space_.store_bytes.load(std::memory_order_acquire);
    for (uint32_t i = 0; i < run_count_; ++i) {
      Run& run = run_[i];
      const uint64_t start = run.first * space_.page_bytes, bytes = run.pages * space_.page_bytes;
      const uint64_t stored = start >= store_bytes ? 0 : std::min(bytes, store_bytes - start);
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
      run_[of_run[i]].result = request[i].result;
      space_.counters.add(Counter::read_requests, 1);
      space_.counters.add(Counter::read_bytes, request[i].size_bytes);
    }
  }

  void install(Run& run) {
    os::Frames& frames = *space_.frames;
    const uint64_t start = run.first * space_.page_bytes;
    const Piece piece = view_.pieces_of(run.first, run.first + run.pages);
    if (run.result == 0)
      run.result = frames.install(piece, run.buffer.data() + (piece.offset - start), false);
    for (uint32_t i = 0; i < run.pages; ++i) {
      const uint64_t page = run.first + i;
      if (run.result == 0) {
        if (frames.can_share()) view_.set_shown(page, true);
        space_.counters.add(Counter::prefetch_fills, 1);
        engine_.finish_fill(space_, page, frame_[run.first_frame + i], 0, false);
        continue;
      }
      // Nobody asked for it yet: whoever touches it tries again, and is told why it fails.
      const Piece shown = view_.piece_of(page);
      frames.unmap({&shown, 1});
      const Piece gone = frames.can_share()
                             ? Piece{nullptr, page * space_.page_bytes, space_.page_bytes, false, 0}
                             : shown;
      frames.free({&gone, 1});
      engine_.give_frame(space_, frame_[run.first_frame + i]);
      space_.words[page].update([](PageValue v) { return v.with(PageState::kAbsent); });
      frames.wake(view_.piece_of(page));
    }
  }

  Engine& engine_;
  Space& space_;
  View& view_;
  const Caller caller_;
  Run run_[kRunsMax];
  uint32_t run_count_ = 0;
  uint32_t frame_[kPagesMax];
  uint32_t page_count_ = 0;
};

// Larger pages, and those that the view shows in part, are filled one by one.
bool Engine::travels_in_runs(const Space& space, const View& view, uint64_t page) const {
  if (space.page_bytes > bounce_.shape().chunk_bytes) return false;
  return !space.frames->can_share() || view.piece_of(page).size_bytes == space.page_bytes;
}

// The page that is touched, and up to `count` - 1 neighbours in the direction of the reader, in one
// transfer: a reader that is faster than the prefetch threads pays one fault for all of them.
// REQUIRES: the page is Filling and ours.
int Engine::fill_along(Space& space, View& view, uint64_t page, int64_t stride, uint32_t count,
                       Caller caller) {
  uint32_t frame[kAlongMax];
  if (const int result = take_frame(space, caller, options_.wait_ns_max, &frame[0]); result != 0) {
    space.words[page].update([](PageValue v) { return v.with(PageState::kAbsent); });
    return result;
  }
  uint32_t n = 1;
  for (; n < std::min(count, kAlongMax); ++n) {
    const uint64_t next = page + static_cast<uint64_t>(stride * n);
    if (next < view.first_page() || next >= view.end_page() || !travels_in_runs(space, view, next))
      break;
    PageValue seen = space.words[next].load();
    if (seen.state() != PageState::kAbsent ||
        !space.words[next].change(seen, seen.with(PageState::kFilling)))
      break;
    if (!space.is_frozen.load(std::memory_order_seq_cst) &&
        take_frame(space, caller, 0, &frame[n]) == 0)
      continue;
    space.words[next].update([](PageValue v) { return v.with(PageState::kAbsent); });
    break;
  }
  Ahead along(*this, space, view, caller);
  for (uint32_t i = 0; i < n; ++i) {  // in the order of the store
    const uint32_t which = stride > 0 ? i : n - 1 - i;
    along.add(page + static_cast<uint64_t>(stride * which), frame[which]);
  }
  along.finish();
  space.counters.add(Counter::fills, 1);
  return -EAGAIN;  // it is there, or absent again because the transfer failed: look
}

void Engine::fill_ahead(View& view, uint64_t first, int64_t stride, uint64_t count) {
  Space& space = *static_cast<Space*>(view.space);
  Ahead ahead(*this, space, view, Caller::kThread);
  const uint64_t begin = view.first_page(), end = view.end_page();
  uint64_t page = first, dropped = 0;
  for (uint64_t i = 0; i < count; ++i, page += static_cast<uint64_t>(stride)) {
    if (page < begin || page >= end || space.is_frozen.load(std::memory_order_acquire)) break;
    region::PageWord& word = space.words[page];
    PageValue seen = word.load();
    if (seen.state() != PageState::kAbsent || !word.change(seen, seen.with(PageState::kFilling))) {
      if (seen.state() == PageState::kResident && space.frames->can_share() && !view.is_shown(page))
        static_cast<void>(bring_in(view, page, nullptr, false, Caller::kThread));
      ++dropped;
      continue;
    }
    if (space.is_frozen.load(std::memory_order_seq_cst)) {
      word.update([](PageValue v) { return v.with(PageState::kAbsent); });
      break;
    }
    if (!travels_in_runs(space, view, page)) {
      if (fill(space, view, page, false, Caller::kThread) != 0) break;
      continue;
    }
    uint32_t frame = budget::kNone;
    if (take_frame(space, Caller::kThread, 1'000'000, &frame) != 0) {
      word.update([](PageValue v) { return v.with(PageState::kAbsent); });
      dropped += count - i;
      break;
    }
    ahead.add(page, frame);
  }
  ahead.finish();
  if (dropped != 0) space.counters.add(Counter::prefetch_dropped, dropped);
}

}  // namespace outcore::paging
