#include "core/recording/miss_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "core/base/assert.h"
#include "core/published/events.h"

namespace outcore::recording {
namespace {

using published::EventRing;

constexpr const char* kUsualPolicy = "s3-fifo";
// Pages may become smaller, and the sample be too large for a while.
constexpr uint32_t kFramesReserved = 4 * 2 * MissCurve::kFramesMax * 16;
constexpr uint64_t kRefreshFills = 256;   // of the sample
constexpr double kForgottenBudgets = 32;  // pages are waited for during so many memories of fills

// Well mixed, and another for each page.
PageKey key_of(uint64_t name) {
  name *= 0x9E3779B97F4A7C15ull;
  name ^= name >> 32;
  name *= 0xD6E8FEB86659FD93ull;
  return name ^ name >> 32;
}

}  // namespace

MissCurve::MissCurve(std::string policy, uint64_t budget_bytes)
    : policy_(std::move(policy)), budget_bytes_(budget_bytes), random_(1) {
  OC_CHECK(budget_bytes != 0);
}

bool MissCurve::is_in_sample(uint64_t page) const {
  return EventRing::is_in_sample(page & (EventRing::kPagesMax - 1), one_in_);
}

// When the first page comes in.
bool MissCurve::start() {
  is_started_ = true;
  // `auto` is the usual one where it cannot probe, and begins with it.
  const bool is_one = policy_.compare(0, 4, "auto") != 0 && make_policy(policy_, 1024, 1024);
  const std::string name = is_one ? policy_ : kUsualPolicy;
  return std::all_of(others_.begin(), others_.end(), [&](OtherBudget& other) {
    return static_cast<bool>(other.allocate(name, kFramesReserved));
  });
}

void MissCurve::sample_one_in(uint64_t one_in) {
  OC_CHECK(std::has_single_bit(one_in));
  if (one_in <= one_in_) return;
  one_in_ = one_in;
  keep([this](uint64_t page) { return is_in_sample(page); });
  if (sample_fills_ > 0 && is_started_ && !has_failed_) fit();
}

void MissCurve::set_memory(uint64_t resident_bytes, uint64_t budget_bytes) {
  OC_CHECK(budget_bytes != 0);
  budget_bytes_ = budget_bytes;
  // While a region ends its pages are gone already, and what it did is not yet told.
  const uint64_t resident_of_both = std::max(resident_bytes, resident_bytes_);
  resident_bytes_ = resident_bytes;
  if (!was_full_) return;
  const double share =
      std::min(1.0, static_cast<double>(resident_of_both) / static_cast<double>(budget_bytes));
  constexpr double kNewest = 1.0 / 16;
  page_share_ = is_share_known_ ? page_share_ + kNewest * (share - page_share_) : share;
  is_share_known_ = true;
}

// The miniatures have the pages that the budgets would have.
void MissCurve::fit() {
  const double page_bytes = sample_bytes_ / sample_fills_;
  OC_ASSERT(page_bytes > 0);
  const auto budget = static_cast<double>(budget_bytes_);
  while (budget / page_bytes > static_cast<double>(2 * kFramesMax * one_in_)) {
    one_in_ *= 2;
    keep([this](uint64_t page) { return is_in_sample(page); });
  }
  for (size_t i = 0; i < kTimes.size(); ++i) {
    const double frames =
        kTimes[i] * page_share_ * budget / page_bytes / static_cast<double>(one_in_);
    OC_ASSERT(frames <= kFramesReserved);
    others_[i].set_capacity(static_cast<uint32_t>(std::clamp<double>(frames, 1, kFramesReserved)));
    others_[i].weigh(static_cast<double>(one_in_));
  }
}

void MissCurve::refresh() {
  until_refresh_ = kRefreshFills;
  const double long_ago = fills_ - kForgottenBudgets * static_cast<double>(budget_bytes_) *
                                       sample_fills_ / sample_bytes_;
  returns_.begin();
  for (auto it = pages_.begin(); it != pages_.end();) {
    const Page& page = it->second;
    bool is_gone = page.is_out && page.since < long_ago;
    for (size_t i = 0; i < others_.size() && is_gone; ++i) is_gone = !others_[i].has(it->first);
    if (is_gone) returns_.note_gone(page.page_class, fills_ - page.since);
    if (page.is_out && !is_gone) returns_.still_out(page.page_class, fills_ - page.since);
    it = is_gone ? forget(it) : std::next(it);
  }
  returns_.end();
  fit();
  if (pages_.size() > kPagesMax) sample_one_in(2 * one_in_);
}

MissCurve::Pages::iterator MissCurve::forget(Pages::iterator page) {
  for (OtherBudget& other : others_)
    if (is_started_ && !has_failed_) other.forget(page->first);
  return pages_.erase(page);
}

double MissCurve::forecast(PageKey key) {
  const auto found = pages_.find(key);
  if (found == pages_.end() || found->second.is_out) return ReturnTimes::kNever;
  return returns_.draw(found->second.page_class, random_);
}

void MissCurve::touch(PageKey key, bool is_guess) {
  const OtherBudget::Forecast forecast = [this](PageKey page) { return this->forecast(page); };
  for (OtherBudget& other : others_) {
    other.advance(fills_, forecast);
    other.note_seen(key);
    other.touch(key, is_guess, fills_, forecast);
  }
}

void MissCurve::note_fill(uint64_t name, uint64_t page_bytes, bool is_guess) {
  OC_CHECK(page_bytes != 0);
  if (!is_in_sample(name) || has_failed_) return;
  sample_fills_ += 1;
  sample_bytes_ += static_cast<double>(page_bytes);
  if (!is_started_) {
    has_failed_ = !start();
    if (has_failed_) return;
    fit();
    if (!is_in_sample(name)) return;
  }
  const PageKey key = key_of(name);
  const auto [found, is_new] = pages_.try_emplace(key, Page{name});
  Page& page = found->second;
  const double age = fills_ - page.since;
  if (page.is_out && is_guess) returns_.note_gone(page.page_class, age);
  if (page.is_out && !is_guess) {
    returns_.note_return(page.page_class, age);
    page.page_class = ReturnTimes::class_after(age);
  }
  if (is_guess) page.page_class = ReturnTimes::kGuess;
  page.is_out = false;
  touch(key, is_guess);
  fills_ += static_cast<double>(one_in_);
  if (--until_refresh_ == 0) refresh();
}

void MissCurve::note_rescue(uint64_t name) {
  if (is_in_sample(name) && is_started_ && !has_failed_) touch(key_of(name), false);
}

void MissCurve::note_eviction(uint64_t name) {
  was_full_ = true;
  if (!is_in_sample(name) || !is_started_ || has_failed_) return;
  const PageKey key = key_of(name);
  Page& page = pages_.try_emplace(key, Page{name}).first->second;
  page.is_out = true;
  page.since = fills_;
  for (OtherBudget& other : others_) other.note_seen(key);
}

double MissCurve::share_at(size_t i) const {
  OC_CHECK(fills_ > 0);
  double share = 1;  // more memory is no worse: what seems so is chance
  for (size_t k = 0; k <= i; ++k) share = std::min(share, others_[k].misses() / fills_);
  return share;
}

double MissCurve::share_of_misses(uint64_t budget_bytes) const {
  if (fills_ == 0 || !was_full_ || budget_bytes <= budget_bytes_) return 1;
  const double times = static_cast<double>(budget_bytes) / static_cast<double>(budget_bytes_);
  double times_before = 1, share_before = 1;
  for (size_t i = 0; i < kTimes.size(); ++i) {
    const double share = share_at(i);
    if (times <= kTimes[i])
      return share_before +
             (share - share_before) * (times - times_before) / (kTimes[i] - times_before);
    times_before = kTimes[i];
    share_before = share;
  }
  return share_before;
}

std::vector<MissCurve::Point> MissCurve::points() const {
  if (fills_ == 0 || has_failed_) return {};
  std::vector<Point> all{{budget_bytes_, 1}};
  if (!was_full_) return all;
  constexpr double kHelps = 0.002;  // of the misses of now
  const double least = share_at(kTimes.size() - 1);
  for (const double times : kTimes) {
    if (all.back().misses < least + kHelps) break;
    const auto bytes =
        static_cast<uint64_t>(std::llround(times * static_cast<double>(budget_bytes_)));
    all.push_back({bytes, share_of_misses(bytes)});
  }
  return all;
}

}  // namespace outcore::recording
