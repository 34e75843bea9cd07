#include "prefetch/stream_table.h"

#include <algorithm>
#include <type_traits>

#include "base/assert.h"

namespace outcore::prefetch {
namespace {

static_assert(std::is_trivially_default_constructible_v<StreamTable>);
static_assert(std::is_trivially_destructible_v<StreamTable>);

// Pages of one space differ by their distance; those of two spaces, but for one pair in 16 million,
// by far more.
uint64_t word_of(uint64_t space_id, int64_t page) {
  const uint64_t tag = (space_id + 1) * 0x9E3779B97F4A7C15ull >> 40;
  return (tag << 40 | static_cast<uint64_t>(page)) + 1;
}

int64_t magnitude(int64_t distance) { return distance < 0 ? -distance : distance; }

// `count` pages from `first` on, as far as they are pages.
PageRun clipped(int64_t first, int64_t stride, uint32_t count, uint64_t page_end) {
  PageRun run{static_cast<uint64_t>(first), stride, 0};
  if (first < 0 || run.first_page >= page_end) return run;
  const uint64_t room = stride > 0 ? (page_end - 1 - run.first_page) / static_cast<uint64_t>(stride)
                                   : run.first_page / static_cast<uint64_t>(-stride);
  run.count = static_cast<uint32_t>(std::min<uint64_t>(room + 1, count));
  return run;
}

}  // namespace

StreamTable::Advice StreamTable::on_miss(uint64_t space_id, uint64_t page,
                                         uint32_t window_pages_max, uint64_t page_end,
                                         bool is_sequential, bool is_in_flight) {
  if (window_pages_max == 0 || page >= kPagesMax) return {};
  const auto here = static_cast<int64_t>(page);
  const uint32_t window_max = std::min(window_pages_max, uint32_t{1} << 24);
  ++clock_;
  Stream* best = nullptr;
  Match how = Match::kNone;
  for (Stream& stream : stream_) {
    if (is_stale(stream)) continue;
    const Match found = match(stream, space_id, here);
    if (found > how) how = found, best = &stream;
  }
  if (best != nullptr) {
    if (follow(*best, how, here, window_max, is_in_flight)) {
      best->window = std::min(best->window, window_max);
      return issue(*best, page_end);
    }
    if (best->stride != 0) return place_in(*best, {});
  }
  const bool is_resting = resting_ > 0;
  if (is_resting) --resting_;
  const int64_t stride = is_resting ? 0 : detect(space_id, here, is_sequential);
  remember(space_id, here);
  if (stride == 0) return {};
  Stream& fresh = start(space_id, here, stride);
  fresh.window = is_sequential && stride == 1 ? window_max : std::min(kFirstWindow, window_max);
  return issue(fresh, page_end);
}

// A random miss near what was taken for a stream would wake it again and again.
bool StreamTable::is_stale(const Stream& stream) const {
  return clock_ - stream.used > kLately + 32 * stream.window;
}

StreamTable::Match StreamTable::match(const Stream& stream, uint64_t space_id, int64_t page) {
  if (stream.stride == 0 || stream.space_id != space_id) return Match::kNone;
  if (page == stream.tripwire || page == stream.end) return Match::kArrived;
  const int64_t distance = page - stream.last;
  if (distance % stream.stride != 0) return Match::kNone;
  const int64_t steps = distance / stream.stride;
  const int64_t steps_issued = (stream.end - stream.last) / stream.stride;
  // Already read, and evicted since: not the reader that this stream follows.
  if (steps < 0) return Match::kNone;
  if (steps < steps_issued) return Match::kInside;
  // Pages of somebody else lay in between: the reader passed them unseen.
  return steps <= steps_issued + 2 * int64_t{stream.window} ? Match::kBeyond : Match::kNone;
}

// Moves the stream on. True if a window is to be issued from its end; if not, it waits, or is
// forgotten (stride 0).
bool StreamTable::follow(Stream& stream, Match how, int64_t page, uint32_t window_max,
                         bool is_in_flight) {
  stream.used = clock_;
  // The same page again: other threads' fills, or a fault that had to be repeated.
  if (page == stream.last) return false;
  const bool has_tripwire = stream.tripwire != stream.end;
  const bool is_dry = how != Match::kInside && !(has_tripwire && page == stream.tripwire);
  const bool has_passed =
      how == Match::kInside && has_tripwire && (page - stream.tripwire) / stream.stride > 0;
  stream.last = page;
  if (how == Match::kInside && !is_in_flight) {
    ++stream.wasted;
    if (stream.wasted > std::max(stream.window / 4, 1u)) {
      stream.window /= 2;
      if (stream.window < kFirstWindow) {
        give_up(stream);
        return false;
      }
      stream.end = page + stream.stride;
      return true;
    }
  }
  if (how == Match::kInside && !has_passed) return false;
  if (is_dry) stream.end = page + stream.stride;
  if (how == Match::kArrived) {
    stream.window *= 2;
    failures_ = 0;
  }
  stream.window = std::min(stream.window, window_max);
  return true;
}

void StreamTable::give_up(Stream& stream) {
  stream.stride = 0;
  resting_ = kRest << failures_;
  if (failures_ < kFailuresMax) ++failures_;
}

// The stride of the shortest row of equally spaced misses that `page` ends; 0 if there is none.
int64_t StreamTable::detect(uint64_t space_id, int64_t page, bool is_sequential) const {
  int64_t best = 0;
  const uint64_t word = word_of(space_id, page);
  for (const uint64_t earlier : missed_) {
    const auto stride = static_cast<int64_t>(word - earlier);
    if (earlier == 0 || stride == 0 || magnitude(stride) > kStrideMax) continue;
    if (best != 0 && magnitude(stride) >= magnitude(best)) continue;
    if (!has_missed(space_id, page - 2 * stride)) continue;
    if (magnitude(stride) > 1 && !has_missed(space_id, page - 3 * stride)) continue;
    best = stride;
  }
  if (best != 0 || !is_sequential) return best;
  return has_missed(space_id, page + 1) ? 0 : 1;
}

bool StreamTable::has_missed(uint64_t space_id, int64_t page) const {
  if (page < 0) return false;
  const uint64_t word = word_of(space_id, page);
  return std::find(missed_, missed_ + kHistory, word) != missed_ + kHistory;
}

void StreamTable::remember(uint64_t space_id, int64_t page) {
  missed_[missed_next_] = word_of(space_id, page);
  missed_next_ = (missed_next_ + 1) % kHistory;
}

StreamTable::Stream& StreamTable::start(uint64_t space_id, int64_t page, int64_t stride) {
  Stream* oldest = &stream_[0];
  for (Stream& stream : stream_) {
    if (stream.stride == 0) {
      oldest = &stream;
      break;
    }
    if (clock_ - stream.used > clock_ - oldest->used) oldest = &stream;
  }
  *oldest = {space_id, page, page + stride, page + stride, stride, 0, 0, clock_};
  return *oldest;
}

// A window from the stream's end on.
StreamTable::Advice StreamTable::issue(Stream& stream, uint64_t page_end) {
  OC_CHECK(stream.stride != 0 && stream.window > 0);
  const int64_t first = stream.end;
  const uint32_t before = stream.window >= kTripwireWindow ? stream.window / 2 : stream.window;
  stream.end = first + int64_t{stream.window} * stream.stride;
  stream.tripwire = first + int64_t{before} * stream.stride;
  stream.wasted = 0;
  Advice advice{};
  const auto add = [&](const PageRun& run) {
    if (run.count != 0) advice.run[advice.run_count++] = run;
  };
  add(clipped(first, stream.stride, before, page_end));
  if (stream.window > before)
    add(clipped(stream.tripwire + stream.stride, stream.stride, stream.window - before - 1,
                page_end));
  return place_in(stream, advice);
}

StreamTable::Advice StreamTable::place_in(const Stream& stream, Advice advice) {
  advice.stride = stream.stride;
  advice.issued = static_cast<uint32_t>((stream.end - stream.last) / stream.stride - 1);
  return advice;
}

uint32_t StreamTable::count() const {
  return static_cast<uint32_t>(std::count_if(
      stream_, stream_ + kStreams,
      [&](const Stream& stream) { return stream.stride != 0 && clock_ - stream.used < kLately; }));
}

bool StreamTable::is_valid() const {
  if (missed_next_ >= kHistory || failures_ > kFailuresMax || resting_ > kRest << kFailuresMax)
    return false;
  for (const Stream& stream : stream_) {
    if (stream.stride == 0) continue;
    if (magnitude(stream.stride) > kStrideMax || stream.window == 0) return false;
    if ((stream.end - stream.last) % stream.stride != 0) return false;
    if ((stream.end - stream.last) / stream.stride < 1) return false;
    const int64_t to_tripwire = (stream.end - stream.tripwire) / stream.stride;
    if (to_tripwire < 0 || to_tripwire > stream.window) return false;
  }
  return true;
}

}  // namespace outcore::prefetch
