#include "core/recording/reuse_distances.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/base/assert.h"
#include "core/base/units.h"
#include "core/published/events.h"

namespace outcore::recording {

using published::EventRing;

size_t ReuseDistances::bucket_of(uint64_t bytes) {
  return std::min<size_t>(kBuckets - 1, std::bit_width(bytes / base::kSystemPage));
}

void ReuseDistances::sample_one_in(uint64_t one_in) {
  OC_CHECK(std::has_single_bit(one_in));
  if (one_in <= one_in_) return;
  one_in_ = one_in;
  keep([one_in](uint64_t page) {
    return EventRing::is_in_sample(page & (EventRing::kPagesMax - 1), one_in);
  });
}

void ReuseDistances::note_touch(uint64_t page, uint64_t page_bytes) {
  OC_CHECK(page_bytes != 0 && page_bytes % base::kSystemPage == 0);
  if (!EventRing::is_in_sample(page & (EventRing::kPagesMax - 1), one_in_)) return;
  if (sums_.empty()) sums_.resize(kMomentsMax + 1);
  if (pages_.size() == kPagesMax && !pages_.contains(page)) {
    sample_one_in(2 * one_in_);
    if (!EventRing::is_in_sample(page & (EventRing::kPagesMax - 1), one_in_)) return;
  }
  if (last_moment_ == kMomentsMax) number_anew();
  const auto [found, is_first] = pages_.try_emplace(page);
  Touch& touch = found->second;
  if (is_first) {
    first_ += one_in_;
  } else {
    const uint64_t between = bytes_ - bytes_until(touch.moment);
    again_[bucket_of(between * one_in_)] += one_in_;
    add(touch.moment, uint64_t{0} - touch.bytes);
  }
  bytes_ += page_bytes - touch.bytes;
  touch = {++last_moment_, page_bytes};
  add(touch.moment, page_bytes);
}

ReuseDistances::Pages::iterator ReuseDistances::forget(Pages::iterator page) {
  bytes_ -= page->second.bytes;
  add(page->second.moment, uint64_t{0} - page->second.bytes);
  return pages_.erase(page);
}

// In the order of their last touches, without the moments that are no page's any more.
void ReuseDistances::number_anew() {
  std::vector<Touch*> touches;
  touches.reserve(pages_.size());
  for (auto& [page, touch] : pages_) touches.push_back(&touch);
  std::sort(touches.begin(), touches.end(),
            [](const Touch* a, const Touch* b) { return a->moment < b->moment; });
  std::fill(sums_.begin(), sums_.end(), 0);
  last_moment_ = 0;
  for (Touch* touch : touches) {
    touch->moment = ++last_moment_;
    add(touch->moment, touch->bytes);
  }
  OC_CHECK(last_moment_ <= kPagesMax);
}

void ReuseDistances::add(uint32_t moment, uint64_t bytes) {
  OC_ASSERT(moment != 0);
  for (uint32_t i = moment; i <= kMomentsMax; i += i & -i) sums_[i] += bytes;
}

uint64_t ReuseDistances::bytes_until(uint32_t moment) const {
  OC_ASSERT(moment <= kMomentsMax);
  uint64_t sum = 0;
  for (uint32_t i = moment; i != 0; i &= i - 1) sum += sums_[i];
  return sum;
}

base::Json ReuseDistances::to_json() const {
  size_t count = kBuckets;
  while (count != 0 && again_[count - 1] == 0) --count;
  base::Json again = base::Json::array();
  for (size_t i = 0; i < count; ++i) again.push_back(again_[i]);
  return {{"first", first_}, {"again", std::move(again)}, {"sampled_one_in", one_in_}};
}

bool ReuseDistances::is_valid() const {
  uint64_t bytes = 0;
  for (const auto& [page, touch] : pages_) {
    bytes += touch.bytes;
    if (touch.moment == 0 || touch.moment > last_moment_) return false;
  }
  return bytes == bytes_ && pages_.size() <= kPagesMax &&
         (sums_.empty() || bytes_until(kMomentsMax) == bytes_);
}

}  // namespace outcore::recording
