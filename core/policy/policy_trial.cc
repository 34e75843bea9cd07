#include "core/policy/policy_trial.h"

#include <algorithm>
#include <bit>

#include "core/base/assert.h"

namespace outcore::policy {

Status PolicyTrial::allocate(std::span<const std::string_view> candidates,
                             uint32_t first_debt_percent) {
  OC_CHECK(first_debt_percent <= 100);
  first_debt_percent_ = first_debt_percent;
  OC_CHECK(candidates_ == 0);
  OC_CHECK(!candidates.empty());
  OC_CHECK(candidates.size() <= kCandidatesMax);
  for (const std::string_view name : candidates)
    if (Status s = miniatures_[candidates_++].allocate(std::string(name), 2 * kFramesWanted); !s)
      return s;
  if (Status s = miniatures_[candidates_].allocate(std::string(candidates[0]), 4 * kFramesWanted);
      !s)
    return s;
  return probes_.allocate();
}

void PolicyTrial::set_capacity(size_t frames) {
  const bool was_on = is_on_;
  const uint32_t before = shift_;
  const auto width = static_cast<uint32_t>(std::bit_width(frames / kFramesWanted));
  shift_ = std::clamp(width, kShiftLeast + 1, kShiftMost + 1) - 1;
  is_on_ = frames >> shift_ >= kFramesLeast && frames >> shift_ < 2 * kFramesWanted;
  if (!is_on_) return;
  frames_ = static_cast<uint32_t>(frames >> shift_);
  for (uint32_t i = 0; i < candidates_; ++i) miniatures_[i].set_capacity(frames_);
  miniatures_[candidates_].set_capacity(2 * frames_);
  if (was_on && shift_ == before) return;
  if (!was_on) {
    fall_asleep();
    debt_ = debt_max() * first_debt_percent_ / 100;
  } else if (!is_asleep_) {
    wake_up();
  }
}

void PolicyTrial::wake_up() {
  OC_CHECK(is_on_);
  is_asleep_ = false;
  must_look_anew_ = true;
  warm_up();
}

void PolicyTrial::touch(PageKey key, FrameId frame, Touch touch) {
  OC_CHECK(is_sampled(key));
  const bool is_guess = touch == Touch::kGuess;
  if (is_asleep_) return;
  uint32_t costs[kMiniaturesMax] = {};
  for (uint32_t i = 0; i < miniatures(); ++i)
    switch (miniatures_[i].touch(key, frame, is_guess, probes_)) {
      case Miniature::Outcome::kHit:
        break;
      case Miniature::Outcome::kRescue:
        costs[i] = price_;
        break;
      case Miniature::Outcome::kMiss:
        costs[i] = Policy::kMissPrice;
        break;
    }
  if (probes_.test_and_clear_overflow()) {
    must_look_anew_ = true;
    warm_up();
  }
  if (is_guess) return;
  if (touches_left_out_ != 0)
    --touches_left_out_;
  else
    add_costs(touch, costs);
}

void PolicyTrial::add_costs(Touch touch, const uint32_t (&costs)[kMiniaturesMax]) {
  const bool is_time_to_halve = ++touches_ >= 8 * uint64_t{frames_};
  if (is_time_to_halve) touches_ = 0;
  const uint32_t own = touch == Touch::kMiss     ? Policy::kMissPrice
                       : touch == Touch::kRescue ? price_
                                                 : 0;
  for (uint32_t i = 0; i < miniatures(); ++i) {
    const uint32_t cost = i == live_ ? own : costs[i];
    const uint64_t sum = cost_[i].load(std::memory_order_relaxed) + cost;
    cost_[i].store(is_time_to_halve ? sum / 2 : sum, std::memory_order_relaxed);
    if (i == candidates_) break;
    const int64_t gain = gain_[i] + int64_t{own} - int64_t{cost} - int64_t{own / kMarginShare};
    gain_[i] = i == live_ ? 0 : std::max<int64_t>(gain, 0);
  }
}

bool PolicyTrial::change() {
  const bool can_compare = is_on_ && blind_turns_ == 0;
  uint32_t best = can_compare ? live_ : 0;
  for (uint32_t i = 0; i < candidates_ && can_compare; ++i)
    if (gain_[i] > std::max(gain_[best], gain_wanted())) best = i;
  if (best == live_) return false;
  live_ = best;
  std::fill(std::begin(gain_), std::end(gain_), 0);
  warm_up();
  return true;
}

void PolicyTrial::owe(size_t halves) {
  if (!is_on_) return;
  debt_ += static_cast<int64_t>(halves);
  if (debt_ > debt_max()) fall_asleep();
}

void PolicyTrial::fall_asleep() {
  is_asleep_ = true;
  must_look_anew_ = false;
  probes_.clear();
}

void PolicyTrial::set_price(uint32_t price, uint32_t paid) {
  OC_CHECK(price != 0);
  if (price == Policy::kNoProbes) {
    blind_turns_ = kBlindTurns;
    fall_asleep();
    return;
  }
  price_ = price;
  if (blind_turns_ != 0) --blind_turns_;
  debt_ = std::max<int64_t>(debt_ - int64_t{paid}, 0);
  if (is_on_ && is_asleep_ && debt_ == 0 && blind_turns_ == 0) wake_up();
}

bool PolicyTrial::must_look_anew() {
  const bool must = must_look_anew_;
  must_look_anew_ = false;
  return must;
}

bool PolicyTrial::is_known_everywhere(PageKey key) {
  for (uint32_t i = 0; i < miniatures(); ++i)
    if (!miniatures_[i].has(key)) return false;
  return true;
}

bool PolicyTrial::is_valid() const {
  for (uint32_t i = 0; i < miniatures(); ++i)
    if (!miniatures_[i].is_valid()) return false;
  for (const int64_t gain : gain_)
    if (gain < 0) return false;
  return live_ < candidates_ && debt_ >= 0;
}

uint64_t PolicyTrial::metadata_bytes() const {
  uint64_t bytes = probes_.metadata_bytes();
  for (uint32_t i = 0; i < miniatures(); ++i) bytes += miniatures_[i].metadata_bytes();
  return bytes;
}

}  // namespace outcore::policy
