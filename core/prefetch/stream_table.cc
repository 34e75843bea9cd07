#include "core/prefetch/stream_table.h"

#include <algorithm>
#include <type_traits>

#include "core/base/assert.h"
#include "core/prefetch/watched_pages.h"

namespace outcore::prefetch {
namespace {

static_assert(std::is_trivially_default_constructible_v<StreamTable>);
static_assert(std::is_trivially_destructible_v<StreamTable>);

// Words of pages of one cache differ by their distance; words of two caches differ by far more,
// except for one pair in 16 million.
uint64_t word_of(uint64_t cache_id, int64_t page) {
  const uint64_t tag = (cache_id + 1) * 0x9E3779B97F4A7C15ull >> 40;
  return (tag << 40 | static_cast<uint64_t>(page)) + 1;
}

// A reader that goes on behind a wall gets this part of the window that it did not get there.
constexpr uint32_t kPastWall = 8;

int64_t magnitude(int64_t distance) { return distance < 0 ? -distance : distance; }

bool is_page(int64_t page, const StreamTable::Miss& miss) {
  return page >= 0 && static_cast<uint64_t>(page) < miss.page_end;
}

}  // namespace

StreamTable::Advice StreamTable::on_miss(const Miss& asked) {
  OC_CHECK(asked.lengths == nullptr || asked.cost != nullptr);
  if (asked.window_max == 0 || asked.page >= kPagesMax) return {};
  OC_ASSERT(is_valid());
  Miss miss = asked;
  miss.window_max = std::min(miss.window_max, kWindowMost);
  miss.gain = std::clamp(miss.gain, StreamCredit::kGainLeast, StreamCredit::kGainMost);
  const auto here = static_cast<int64_t>(miss.page);
  ++clock_;
  const uint64_t chance = WatchedPages::mix(miss.page ^ uint64_t{clock_} << 40);
  earn(StreamCredit::of_miss(miss.gain, chance), miss);
  Stream* best = nullptr;
  Match how = Match::kNone;
  for (Stream& stream : stream_) {
    if (is_stale(stream)) continue;
    const Match found = match(stream, miss.cache_id, here);
    if (found > how) how = found, best = &stream;
  }
  if (best != nullptr) {
    settle(*best, how, miss);
    const bool is_due = follow(*best, how, miss);
    const int64_t paid_end = best->end;
    Advice advice{};
    if (is_due) advice = issue(*best, miss);
    if (best->stride != 0) {
      fill_along(*best, paid_end, miss, &advice);
      // Without credit it is as if there were no stream: clusters may be worth their while here.
      if (!miss.is_sequential && advice.run_count == 0 && advice.along == 0 && credit_.pages() == 0)
        advice.stride = 0;
      return advice;
    }
  }
  const bool is_resting = resting_ > 0;
  if (is_resting) --resting_;
  const int64_t stride = is_resting ? 0 : detect(miss.cache_id, here, miss.is_sequential);
  remember(miss.cache_id, here);
  if (stride == 0) return {};
  Stream& fresh = start(miss, stride);
  fresh.window =
      miss.is_sequential && stride == 1 ? miss.window_max : std::min(kFirstWindow, miss.window_max);
  Advice advice = issue(fresh, miss);
  fill_along(fresh, here + stride, miss, &advice);
  return advice;
}

// As if the two pages at each end had been missed in the direction of that end.
void StreamTable::on_cluster(uint64_t cache_id, uint64_t first, uint64_t end) {
  OC_CHECK(first < end);
  if (end >= kPagesMax || end - first < 2) return;
  const auto low = static_cast<int64_t>(first), high = static_cast<int64_t>(end);
  for (const int64_t page : {low, low + 1, high - 2, high - 1}) {
    if (!has_missed(cache_id, page)) remember(cache_id, page);
  }
  OC_ASSERT(has_missed(cache_id, high - 1));
}

// The reader of the stream is at the missed page: decides which prefetched pages were used.
void StreamTable::settle(Stream& stream, Match how, const Miss& miss) {
  OC_CHECK(stream.stride != 0);
  OC_CHECK(how != Match::kNone);
  const auto page = static_cast<int64_t>(miss.page);
  if (page == stream.last) return;
  const bool is_tripwire = stream.tripwire != stream.end && page == stream.tripwire;
  const bool is_end = page == stream.end;
  uint64_t used = 0;
  if (is_tripwire || (is_end && stream.tripwire == stream.end)) used = stream.before;
  if (is_end && stream.tripwire != stream.end) used = stream.after;
  uint64_t again = 0;  // the page behind them proves them, too
  if (how == Match::kArrived || page == stream.last + (int64_t{stream.again} + 1) * stream.stride)
    again = stream.again;
  stream.again = 0;
  earn(StreamCredit::of_use(used, again, miss.gain, miss.readers), miss);
  const bool has_passed = how == Match::kInside && stream.tripwire != stream.end &&
                          (page - stream.tripwire) / stream.stride > 0;
  if (is_tripwire || has_passed) {
    stream.before = stream.after;
    stream.after = 0;
  } else if (how != Match::kInside) {
    stream.before = stream.after = 0;
  }
  // The page was brought in, evicted, and is missed now.
  if (how == Match::kInside && !miss.is_in_flight && stream.before > 0) --stream.before;
}

// Without this limit, random misses near an old stream would keep it alive.
bool StreamTable::is_stale(const Stream& stream) const {
  return clock_ - stream.used > kLately + 32 * stream.window;
}

StreamTable::Match StreamTable::match(const Stream& stream, uint64_t cache_id, int64_t page) {
  if (stream.stride == 0 || stream.cache_id != cache_id) return Match::kNone;
  if (page == stream.tripwire || page == stream.end) return Match::kArrived;
  const int64_t distance = page - stream.last;
  if (distance % stream.stride != 0) return Match::kNone;
  const int64_t steps = distance / stream.stride;
  const int64_t steps_issued = (stream.end - stream.last) / stream.stride;
  // The page was read already and evicted since: this is not the reader of the stream.
  if (steps < 0) return Match::kNone;
  if (steps < steps_issued) return Match::kInside;
  // Pages that were already in memory lay in between; the reader passed them without a miss.
  return steps <= steps_issued + 2 * int64_t{stream.window} ? Match::kBeyond : Match::kNone;
}

// Advances the stream. True: issue a window from its end. False: the stream waits, or is forgotten
// (stride 0).
bool StreamTable::follow(Stream& stream, Match how, const Miss& miss) {
  OC_CHECK(stream.stride != 0);
  OC_CHECK(how != Match::kNone);
  OC_ASSERT((stream.end - stream.last) % stream.stride == 0);
  const auto page = static_cast<int64_t>(miss.page);
  stream.used = clock_;
  // The same page again: it is filled by other threads, or the fault was repeated.
  if (page == stream.last) return false;
  const bool has_tripwire = stream.tripwire != stream.end;
  const bool is_dry = how != Match::kInside && !(has_tripwire && page == stream.tripwire);
  const bool has_passed =
      how == Match::kInside && has_tripwire && (page - stream.tripwire) / stream.stride > 0;
  note_way(stream, page, miss);
  stream.last = page;
  if (how == Match::kInside && !miss.is_in_flight && !miss.has_hints) {
    ++stream.wasted;
    if (stream.wasted > std::max(stream.window / 4, 1u)) {
      stream.window /= 2;
      if (stream.window < kFirstWindow) {
        if (stream.watched != 0 && miss.lengths != nullptr)
          miss.lengths->forget(stream.watched - 1u);
        give_up(stream);
        return false;
      }
      move_end(stream, page + stream.stride);
      stream.before = stream.after = 0;
      return true;
    }
  }
  if (how == Match::kInside && !has_passed) return false;
  if (is_dry) move_end(stream, page + stream.stride);
  if (how == Match::kArrived && !stream.is_at_wall) {
    // Behind a wall they grow when the reader has come as far as others do not.
    if (stream.watched == 0 || stream.watched != stream.passed) stream.window *= 2;
    failures_ = 0;
  }
  if (stream.is_at_wall) stream.window = std::max(stream.window / kPastWall, kFirstWindow);
  stream.is_at_wall = false;
  stream.window = std::min(stream.window, miss.window_max);
  return true;
}

void StreamTable::give_up(Stream& stream) {
  OC_CHECK(stream.stride != 0);
  OC_CHECK(failures_ <= kFailuresMax);
  stream.stride = 0;
  resting_ = kRest << failures_;
  if (failures_ < kFailuresMax) ++failures_;
}

// The stride of the shortest row of equally spaced misses that ends with `page`; 0 if there is
// none.
int64_t StreamTable::detect(uint64_t cache_id, int64_t page, bool is_sequential) const {
  int64_t best = 0;
  const uint64_t word = word_of(cache_id, page);
  for (const uint64_t earlier : missed_) {
    const auto stride = static_cast<int64_t>(word - earlier);
    if (earlier == 0 || stride == 0 || magnitude(stride) > kStrideMax) continue;
    if (best != 0 && magnitude(stride) >= magnitude(best)) continue;
    if (!has_missed(cache_id, page - 2 * stride)) continue;
    if (magnitude(stride) > 1 && !has_missed(cache_id, page - 3 * stride)) continue;
    best = stride;
  }
  if (best != 0 || !is_sequential) return best;
  return has_missed(cache_id, page + 1) ? 0 : 1;
}

bool StreamTable::has_missed(uint64_t cache_id, int64_t page) const {
  if (page < 0) return false;
  const uint64_t word = word_of(cache_id, page);
  return std::find(missed_, missed_ + kHistory, word) != missed_ + kHistory;
}

void StreamTable::remember(uint64_t cache_id, int64_t page) {
  OC_CHECK(missed_next_ < kHistory);
  OC_ASSERT(page >= 0);
  missed_[missed_next_] = word_of(cache_id, page);
  missed_next_ = (missed_next_ + 1) % kHistory;
}

StreamTable::Stream& StreamTable::start(const Miss& miss, int64_t stride) {
  OC_CHECK(stride != 0);
  OC_CHECK(magnitude(stride) <= kStrideMax);
  const auto page = static_cast<int64_t>(miss.page);
  Stream* oldest = &stream_[0];
  for (Stream& stream : stream_) {
    if (stream.stride == 0) {
      oldest = &stream;
      break;
    }
    if (clock_ - stream.used > clock_ - oldest->used) oldest = &stream;
  }
  *oldest = {};
  oldest->cache_id = miss.cache_id;
  oldest->last = page;
  oldest->end = oldest->tripwire = page + stride;
  oldest->stride = stride;
  oldest->used = clock_;
  oldest->length = 1;
  return *oldest;
}

void StreamTable::move_end(Stream& stream, int64_t end) {
  OC_CHECK(stream.stride != 0);
  const int64_t length = stream.length + (end - stream.end) / stream.stride;
  stream.length = static_cast<uint32_t>(std::clamp<int64_t>(length, 1, INT32_MAX));
  stream.end = end;
}

// The reader has come to this page: perhaps across the boundary that is watched.
void StreamTable::note_way(Stream& stream, int64_t page, const Miss& miss) {
  const int64_t steps = (page - stream.last) / stream.stride;
  OC_CHECK(steps >= 0);
  if (stream.watched == 0) return;
  if (steps < stream.proof) {
    stream.proof -= static_cast<uint32_t>(steps);
    return;
  }
  if (miss.lengths != nullptr) miss.lengths->cross(stream.watched - 1u);
  stream.watched = 0;
}

// Whether streams that have come to the end of this one mostly end there.
bool StreamTable::is_wall(Stream& stream, const Miss& miss) {
  if (miss.lengths == nullptr || miss.is_sequential) return false;
  const uint32_t step = StreamLengths::step_of(stream.length);
  const auto middle = static_cast<int64_t>(std::max(stream.window / 2, 1u));
  if (step < stream.passed || !is_page(stream.end + middle * stream.stride, miss)) return false;
  if (stream.watched != 0) return false;  // its reader has to prove itself at another boundary
  const bool pays = miss.lengths->pays(step, stream.window, *miss.cost);
  // A reader passes pages that are in memory without a miss: what it does would not be known.
  if (miss.absent.has(stream.end)) {
    miss.lengths->watch(step);
    stream.watched = static_cast<uint8_t>(step + 1);
    stream.proof = static_cast<uint32_t>((stream.end - stream.last) / stream.stride + middle);
  }
  if (pays) return false;
  stream.passed = static_cast<uint8_t>(step + 1);
  return true;
}

// Issues a window from the stream's end, as far as the credit reaches; only pages that are not in
// memory count. The tripwire and the end are such pages, too: otherwise they would not be missed.
StreamTable::Advice StreamTable::issue(Stream& stream, const Miss& miss) {
  OC_CHECK(stream.stride != 0);
  OC_CHECK(stream.window > 0);
  stream.wasted = 0;
  stream.tripwire = stream.end;
  stream.is_at_wall = false;
  stream.window = std::min(stream.window, miss.window_max);
  if (!miss.is_sequential && credit_.pages() < stream.window)
    stream.window = std::max(credit_.pages(), 1u);
  if (!miss.is_sequential && credit_.pages() == 0) return {};
  if (is_wall(stream, miss)) {
    stream.is_at_wall = true;
    return {};
  }
  const bool has_tripwire = stream.window >= kTripwireWindow;
  const uint32_t first_part = has_tripwire ? stream.window / 2 : stream.window;
  const uint32_t pages = stream.window - (has_tripwire ? 1 : 0);
  const int64_t first = stream.end;
  int64_t at = first, behind = first;  // behind: after the last page to bring in
  int64_t tripwire = first;
  uint32_t issued = 0, after = 0;
  bool is_passed = false;
  for (uint32_t steps = 0; steps < 4 * stream.window + kWalkMin; ++steps, at += stream.stride) {
    if (!is_page(at, miss)) break;
    if (!miss.absent.has(at)) continue;
    if (issued == pages) break;
    if (has_tripwire && !is_passed && issued == first_part) {
      is_passed = true;
      tripwire = at;
      continue;
    }
    ++issued;
    after += is_passed ? 1 : 0;
    behind = at + stream.stride;
  }
  OC_CHECK(issued <= pages);
  OC_CHECK(after <= issued);
  move_end(stream, at);
  stream.tripwire = is_passed ? tripwire : at;
  stream.before += issued - after;
  stream.after = after;
  if (miss.is_sequential)
    credit_.spend_at_most_all(issued);
  else
    credit_.spend(issued);
  Advice advice{};
  const auto add = [&](int64_t from, int64_t to) {
    OC_CHECK(advice.run_count < 2);
    if (const int64_t count = (to - from) / stream.stride; count > 0)
      advice.run[advice.run_count++] = {static_cast<uint64_t>(from), stream.stride,
                                        static_cast<uint32_t>(count)};
  };
  add(first, is_passed ? tripwire : behind);
  if (is_passed) add(tripwire + stream.stride, behind);
  return advice;
}

// The pages next to the miss that the caller brings in itself. Pages before `paid_end` were brought
// in before: those that are missing are paid again.
void StreamTable::fill_along(Stream& stream, int64_t paid_end, const Miss& miss, Advice* advice) {
  advice->stride = stream.stride;
  if (magnitude(stream.stride) != 1 || miss.is_in_flight) return;
  const uint32_t credit = credit_.pages();
  int64_t next = stream.last + stream.stride;
  for (; advice->along < miss.along_max && next != stream.end; next += stream.stride) {
    if (!is_page(next, miss) || !miss.absent.has(next)) break;
    if ((paid_end - next) / stream.stride > 0 && stream.again++ == credit && !miss.is_sequential)
      break;
    ++advice->along;
  }
  OC_CHECK(advice->along <= miss.along_max);
  stream.again = std::min(stream.again, credit);
  credit_.spend(stream.again);
  // If the tripwire is filled along, there is none.
  if (stream.tripwire != stream.end && (next - stream.tripwire) / stream.stride > 0) {
    stream.tripwire = stream.end;
    stream.before += stream.after;
    stream.after = 0;
  }
}

uint32_t StreamTable::count() const {
  return static_cast<uint32_t>(std::count_if(
      stream_, stream_ + kStreams,
      [&](const Stream& stream) { return stream.stride != 0 && clock_ - stream.used < kLately; }));
}

bool StreamTable::is_valid() const {
  if (missed_next_ >= kHistory || failures_ > kFailuresMax || resting_ > kRest << kFailuresMax)
    return false;
  if (!credit_.is_valid()) return false;
  for (const Stream& stream : stream_) {
    if (stream.stride == 0) continue;
    if (magnitude(stream.stride) > kStrideMax || stream.window == 0) return false;
    if (stream.watched > StreamLengths::kSteps || stream.passed > StreamLengths::kSteps)
      return false;
    if (stream.length == 0 || (stream.is_at_wall && stream.tripwire != stream.end)) return false;
    if ((stream.end - stream.last) % stream.stride != 0) return false;
    if ((stream.end - stream.last) / stream.stride < 1) return false;
    const int64_t to_tripwire = (stream.end - stream.tripwire) / stream.stride;
    if (to_tripwire < 0 || to_tripwire > 4 * int64_t{kWindowMost} + kWalkMin) return false;
  }
  return true;
}

}  // namespace outcore::prefetch
