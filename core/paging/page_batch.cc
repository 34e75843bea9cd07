#include "core/paging/page_batch.h"

#include <algorithm>
#include <cstring>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/prefetch/stream_table.h"
#include "core/store/store_calls.h"

namespace outcore::paging {

using metrics::Counter;
using os::Piece;
using region::PageState;
using region::PageValue;
using region::View;

namespace {

// What may lie between two pages of a run: to read it as well costs less than a transfer of its own
// ("data sieving": Thakur et al., Frontiers '99). Where many readers keep the device busy they gain
// nothing by reading half as much again (decision 0024): there a gap is small beside the run.
constexpr uint64_t kGapBytesMax = 12 << 10;
constexpr uint64_t kPagesAGapPage = 4;

}  // namespace

void PageBatch::add(uint64_t page, uint32_t frame, bool is_written) {
  OC_CHECK(frame < pager_.frames.count());
  OC_CHECK(cache_.words[page].glance() == PageState::kFilling);
  OC_CHECK(!is_written || cache_.page_bytes == base::kSystemPage);
  if (page_count_ == frame_.size() || (!extends(page, is_written) && !open_run(page, is_written))) {
    finish();
    OC_CHECK(open_run(page, is_written));
  }
  OC_CHECK(page_count_ < frame_.size());
  OC_CHECK(run_count_ != 0);
  frame_[page_count_++] = frame;
  Run& run = run_[run_count_ - 1];
  run.add(static_cast<uint32_t>(page - run.first));
}

void PageBatch::finish() {
  read_all();
  for (uint32_t i = 0; i < run_count_; ++i) {
    install(run_[i]);
    pager_.bounce.release(run_[i].buffer);
  }
  run_count_ = page_count_ = 0;
}

// Whether the last run can take the page.
bool PageBatch::extends(uint64_t page, bool is_written) {
  if (run_count_ == 0) return false;
  const Run& last = run_[run_count_ - 1];
  const uint64_t end = last.first + last.span;
  if (page < end || last.is_written != is_written) return false;
  if (page - last.first >= kRunPagesMax) return false;
  if ((page - last.first + 1) * cache_.page_bytes > last.buffer.size()) return false;
  const uint64_t gap = page - end;
  if (gap == 0) return true;
  if (gap * cache_.page_bytes > kGapBytesMax || !cache_.traits.can_read_while_written) return false;
  return gap * kPagesAGapPage <= last.pages ||
         pager_.readers.count() <= prefetch::StreamCredit::kFewReaders;
}

bool PageBatch::open_run(uint64_t page, bool is_written) {
  if (run_count_ == kRunsMax) return false;
  // The first may wait for a buffer: this thread holds none. A later one must not.
  const std::span<std::byte> buffer =
      run_count_ == 0 ? pager_.bounce.acquire(run_bytes_) : pager_.bounce.try_acquire(run_bytes_);
  if (buffer.empty()) return false;
  OC_CHECK(buffer.size() >= cache_.page_bytes);
  Run& run = run_[run_count_++];
  run = Run{};
  run.first = page;
  run.first_frame = page_count_;
  run.is_written = is_written;
  run.buffer = buffer;
  return true;
}

void PageBatch::read_all() {
  StoreRequest request[kRunsMax];
  uint32_t of_run[kRunsMax], requests = 0;
  for (uint32_t i = 0; i < run_count_; ++i) {
    Run& run = run_[i];
    const uint64_t start = run.first * cache_.page_bytes, bytes = span_bytes(run);
    OC_CHECK(run.pages != 0);
    OC_CHECK(bytes <= run.buffer.size());
    const uint64_t stored = cache_.stored_bytes(start, bytes);
    OC_CHECK(stored <= bytes);
    const bool is_hole = stored == 0 || store::is_hole(*cache_.store.load(), start, stored);
    std::memset(run.buffer.data() + (is_hole ? 0 : stored), 0, bytes - (is_hole ? 0 : stored));
    if (is_hole) continue;
    of_run[requests] = i;
    request[requests++] = {start, run.buffer.data(), static_cast<size_t>(stored), false, 0};
  }
  for (uint32_t begin = 0; begin < requests;) {
    const uint32_t at_once = cache_.read_gate.enter(requests - begin);
    const std::span<StoreRequest> batch{request + begin, at_once};
    if (caller_ == Caller::kFault) {  // transfer() may allocate
      for (StoreRequest& r : batch)
        r.result = store::read(*cache_.store.load(), r.offset, {r.bytes, r.size_bytes});
    } else {
      store::transfer(*cache_.store.load(), batch);
    }
    cache_.read_gate.leave(at_once);
    begin += at_once;
  }
  for (uint32_t i = 0; i < requests; ++i) {
    OC_ASSERT(request[i].result <= 0);
    run_[of_run[i]].result = request[i].result;
    cache_.counters.add(Counter::read_requests, 1);
    cache_.counters.add(Counter::read_bytes, request[i].size_bytes);
  }
}

void PageBatch::install(Run& run) {
  OC_CHECK(run.has(0));
  uint32_t frame = run.first_frame;
  for (uint32_t at = 0; at < run.span;) {
    const uint32_t pages = run.has(at) ? install_pages(run, at, frame) : 0;
    frame += pages;
    at += std::max(pages, 1u);
  }
  OC_CHECK(frame == run.first_frame + run.pages);
}

// Neighbours from `at` on in one step, as far as they are alike. Gives their number.
uint32_t PageBatch::install_pages(Run& run, uint32_t at, uint32_t frame) {
  const uint64_t first = run.first + at;
  const bool is_written = this->is_written(run, first);
  uint32_t end = at;
  while (end < run.span && run.has(end) && this->is_written(run, run.first + end) == is_written)
    ++end;
  OC_CHECK(end > at);
  const uint32_t pages = end - at;
  const Piece piece = view_.pieces_of(first, first + pages);
  OC_CHECK(piece.size_bytes != 0);
  OC_CHECK(piece.size_bytes <= pages * cache_.page_bytes);
  const std::byte* bytes = run.buffer.data() + (piece.offset - run.first * cache_.page_bytes);
  for (uint32_t i = 0; is_written && i < pages; ++i)
    filler_.begin(cache_, first + i, frame_[frame + i]);
  const int result =
      run.result != 0 ? run.result : cache_.frames->install(piece, bytes, is_written);
  for (uint32_t i = 0; i < pages; ++i) finish_page(first + i, frame_[frame + i], result, run);
  return pages;
}

void PageBatch::finish_page(uint64_t page, uint32_t frame, int result, const Run& run) {
  os::Frames& frames = *cache_.frames;
  if (result == 0) {
    if (frames.can_share()) view_.set_shown(page, true);
    cache_.counters.add(page == asked_ ? Counter::fills : counter_, 1);
    filler_.finish(
        cache_, page, frame, 0,
        PageValue(is_written(run, page) && frames.has_write_faults() ? PageValue::kDirty : 0),
        is_guessed_ && page != asked_);
    return;
  }
  // Nobody asked for it yet: whoever touches it tries again, and is told why it fails.
  filler_.undo(cache_, view_.piece_of(page), page, run.result == 0);
  supply_.free_frame(cache_, frame);
  cache_.abandon(page);
  frames.wake(view_.piece_of(page));
}

}  // namespace outcore::paging
