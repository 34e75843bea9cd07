#include "core/recording/other_budget.h"

#include <algorithm>

#include "core/base/assert.h"
#include "core/recording/return_times.h"

namespace outcore::recording {

namespace {
constexpr uint32_t kWorthIt = 32;
}

Status OtherBudget::allocate(const std::string& policy, uint32_t frames_max) {
  OC_CHECK(frames_max != 0);
  if (Status s = miniature_.allocate(policy, frames_max); !s) return s;
  return dropped_.allocate();
}

void OtherBudget::set_capacity(uint32_t frames) {
  OC_CHECK(frames != 0);
  // A policy begins anew to learn what suits its size, which a few frames are not worth.
  const uint32_t before = miniature_.capacity();
  if (std::max(before, frames) - std::min(before, frames) > before / kWorthIt)
    miniature_.set_capacity(frames);
}

void OtherBudget::touch(PageKey key, bool is_guess, double now, const Forecast& forecast) {
  OC_ASSERT(now >= 0);
  const auto outcome = miniature_.touch(key, FrameId{0}, is_guess, dropped_);
  if (outcome == policy::Miniature::Outcome::kMiss) misses_ += weight_;
  while (!dropped_.is_empty()) {
    const PageKey dropped = dropped_.pop().key;
    const double after = forecast(dropped);
    OC_ASSERT(after >= 0);
    if (after >= ReturnTimes::kNever) continue;
    due_[dropped] = now + after;
    next_.push({now + after, dropped});
  }
  if (next_.size() > 4 * due_.size() + 1024) drop_stale();
}

void OtherBudget::advance(double now, const Forecast& forecast) {
  while (!next_.empty() && next_.top().first <= now) {
    const auto [at, key] = next_.top();
    next_.pop();
    const auto found = due_.find(key);
    if (found == due_.end() || found->second != at) continue;
    due_.erase(found);
    touch(key, false, at, forecast);
  }
}

void OtherBudget::drop_stale() {
  std::vector<Due> all;
  for (const auto& [key, at] : due_) all.emplace_back(at, key);
  next_ = decltype(next_)(std::greater<>(), std::move(all));
  OC_ASSERT(next_.size() == due_.size());
}

void OtherBudget::forget(PageKey key) {
  due_.erase(key);
  miniature_.forget(key);
}

}  // namespace outcore::recording
