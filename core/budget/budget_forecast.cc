#include "core/budget/budget_forecast.h"

#include <algorithm>
#include <limits>

#include "core/base/assert.h"
#include "core/base/units.h"

namespace outcore::budget {
namespace {

constexpr uint64_t kMarginLeast = uint64_t{64} << 20;
constexpr uint64_t kMarginShare = 20, kMarginShareMost = 4;
// A change of the budget that is worth it: one in so many bytes of it.
constexpr uint64_t kShrinkShare = 128, kGrowthShare = 64;
constexpr uint64_t kAheadShare = 4;  // of the budget: the most that one period gives ahead of time
constexpr uint64_t kStalledShare = 100;  // one in so many moments of the time since the last sample
constexpr size_t kChangesLeast = 3;      // of which there is a trend

uint64_t less(uint64_t from, uint64_t bytes) { return from - std::min(from, bytes); }

}  // namespace

BudgetForecast::BudgetForecast(uint64_t min_bytes, uint64_t max_bytes)
    : min_bytes_(base::round_up(min_bytes, base::kSystemPage)),
      max_bytes_(std::max(min_bytes_, base::round_down(max_bytes, base::kSystemPage))) {
  OC_CHECK(min_bytes <= max_bytes);
}

uint64_t BudgetForecast::margin_of(uint64_t limit_bytes) {
  const uint64_t margin =
      std::min(std::max(limit_bytes / kMarginShare, kMarginLeast), limit_bytes / kMarginShareMost);
  OC_CHECK(margin <= limit_bytes);
  return margin;
}

void BudgetForecast::remember(const BudgetSample& sample) {
  OC_CHECK(count_ == 0 || sample.at_ns >= seen(0).at_ns);
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  const uint64_t obtainable =
      sample.available_bytes + std::min(sample.used_bytes, kMost - sample.available_bytes);
  if (count_ == 0) calm_since_ns_ = grown_ns_ = sample.at_ns;
  seen_[next_] = {sample.at_ns, obtainable};
  next_ = (next_ + 1) % seen_.size();
  count_ = std::min(count_ + 1, seen_.size());
  OC_ASSERT(is_valid());
}

// Shares of ten seconds stay high for a while after the last stall. REQUIRES: before remember().
void BudgetForecast::note_pressure(const BudgetSample& sample) {
  is_pressed_ = is_stalling_ = false;
  if (!sample.pressure) {
    has_stalled_us_ = false;
    return;
  }
  const os::MemoryPressure& now = *sample.pressure;
  is_pressed_ = now.some_percent >= kSomePercent || now.full_percent >= kFullPercent;
  if (has_stalled_us_ && count_ != 0) {
    const uint64_t grown_ns = less(now.stalled_us, stalled_us_) * 1000;
    is_stalling_ = is_pressed_ && grown_ns > less(sample.at_ns, seen(0).at_ns) / kStalledShare;
  }
  stalled_us_ = now.stalled_us;
  has_stalled_us_ = true;
  OC_ASSERT(is_pressed_ || !is_stalling_);
}

uint64_t BudgetForecast::expected_fall() const {
  OC_CHECK(count_ != 0);
  const size_t changes = count_ - 1;
  if (changes < kChangesLeast) return 0;
  std::array<double, kChanges> per_ns{};
  for (size_t i = 0; i < changes; ++i) {
    const Seen &now = seen(i), &before = seen(i + 1);
    per_ns[i] =
        (static_cast<double>(now.obtainable_bytes) - static_cast<double>(before.obtainable_bytes)) /
        static_cast<double>(std::max<uint64_t>(now.at_ns - before.at_ns, 1));
  }
  std::sort(per_ns.begin(), per_ns.begin() + static_cast<ptrdiff_t>(changes));
  const double median = per_ns[changes / 2];
  const Seen &newest = seen(0), &oldest = seen(changes);
  const uint64_t span_ns = std::max<uint64_t>(newest.at_ns - oldest.at_ns, 1);
  const double mean = (static_cast<double>(newest.obtainable_bytes) -
                       static_cast<double>(oldest.obtainable_bytes)) /
                      static_cast<double>(span_ns);
  const double change = std::max(median, mean);
  if (change >= 0) return 0;
  const uint64_t ahead_ns = std::min(span_ns / changes, kPeriodNs) * kPeriodsAhead;
  const double fall = -change * static_cast<double>(ahead_ns);
  OC_CHECK(fall >= 0);
  const uint64_t obtainable = newest.obtainable_bytes;
  return fall >= static_cast<double>(obtainable) ? obtainable : static_cast<uint64_t>(fall);
}

uint64_t BudgetForecast::lowest_obtainable() const {
  OC_CHECK(count_ != 0);
  uint64_t lowest = seen(0).obtainable_bytes;
  for (size_t i = 1; i < count_; ++i) lowest = std::min(lowest, seen(i).obtainable_bytes);
  return lowest;
}

// REQUIRES: the budget need not shrink.
uint64_t BudgetForecast::grown(const BudgetSample& sample, uint64_t could_bytes,
                               uint64_t slack_bytes) {
  OC_CHECK(sample.at_ns >= calm_since_ns_);
  const uint64_t budget = sample.budget_bytes;
  if (sample.at_ns - calm_since_ns_ < kCalmPeriods * kPeriodNs) return budget;
  if (sample.at_ns - grown_ns_ < kPeriodNs) return budget;
  const uint64_t most = is_pressed_ ? std::min(could_bytes / 2, less(could_bytes, slack_bytes))
                                    : less(could_bytes, slack_bytes);
  const uint64_t step = std::min(budget / kStepShare, less(std::min(most, max_bytes_), budget));
  if (step <= budget / kGrowthShare) return budget;
  grown_ns_ = sample.at_ns;
  return budget + step;
}

BudgetDecision BudgetForecast::next(const BudgetSample& sample) {
  OC_CHECK(sample.budget_bytes != 0);
  OC_CHECK(sample.budget_bytes % base::kSystemPage == 0);
  note_pressure(sample);
  const bool has_before = count_ != 0;
  const uint64_t before = has_before ? seen(0).obtainable_bytes : 0;
  remember(sample);
  const uint64_t obtainable = seen(0).obtainable_bytes;
  const uint64_t margin = margin_of(sample.limit_bytes), slack = margin / 2;
  const uint64_t fall = expected_fall(), budget = sample.budget_bytes;
  const uint64_t could = less(less(obtainable, fall), margin);
  const bool is_eased = is_stalling_ && could / 2 < budget && sample.at_ns - eased_ns_ >= kEaseNs;
  uint64_t wanted = budget;
  if (less(budget, could) > budget / kShrinkShare)
    wanted =
        std::max(could, less(std::min(budget, less(obtainable, margin)), budget / kAheadShare));
  if (is_eased) {
    wanted = std::min(wanted, std::max(budget - budget / kStepShare, could / 2));
    eased_ns_ = sample.at_ns;
  }
  if (wanted < budget || fall > slack)
    calm_since_ns_ = sample.at_ns;
  else
    wanted = grown(sample, less(less(lowest_obtainable(), fall), margin), slack);
  // What must stay holds a shrink back. It is no reason to grow: who pins may yet be refused.
  const uint64_t floor =
      std::max(min_bytes_, std::min(base::round_up(sample.least_bytes, base::kSystemPage), budget));
  wanted =
      std::clamp(base::round_down(wanted, base::kSystemPage), floor, std::max(floor, max_bytes_));
  const bool is_sudden = has_before && less(before, obtainable) > slack / 4;
  return {wanted, wanted < budget || is_sudden};
}

bool BudgetForecast::is_valid() const {
  for (size_t i = 1; i < count_; ++i)
    if (seen(i).at_ns > seen(i - 1).at_ns) return false;
  return count_ <= seen_.size() && next_ < seen_.size();
}

}  // namespace outcore::budget
