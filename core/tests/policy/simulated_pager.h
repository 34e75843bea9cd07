// SimulatedPager: the engine from a policy's point of view: batches between two watermarks, leaving
// frames, rescues, probes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outcore/policy.h"

namespace outcore::policy {

// A random generator; the seed repeats the sequence (xorshift64*).
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ull | 1) {}
  uint64_t next() {
    state_ ^= state_ >> 12, state_ ^= state_ << 25, state_ ^= state_ >> 27;
    return state_ * 0x2545F4914F6CDD1Dull;
  }
  uint64_t below(uint64_t n) { return next() % n; }
  double share() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

// Pages by popularity, scattered (Gray et al., SIGMOD 1994).
class Zipf {
 public:
  Zipf(uint64_t count, double theta) : count_(count), theta_(theta) {
    for (uint64_t i = 1; i <= count; ++i) zeta_ += 1 / std::pow(static_cast<double>(i), theta);
    alpha_ = 1 / (1 - theta);
    eta_ = (1 - std::pow(2.0 / static_cast<double>(count), 1 - theta)) /
           (1 - (1 + 1 / std::pow(2, theta)) / zeta_);
  }
  uint64_t next(Dice& dice) const {
    const double u = dice.share(), uz = u * zeta_;
    uint64_t rank = uz < 1 ? 0 : 1;
    if (uz >= 1 + std::pow(.5, theta_))
      rank = static_cast<uint64_t>(static_cast<double>(count_) *
                                   std::pow(eta_ * u - eta_ + 1, alpha_));
    return (std::min(rank, count_ - 1) * 0x9E3779B97F4A7C15ull >> 17) % count_;
  }

 private:
  uint64_t count_;
  double theta_, zeta_ = 0, alpha_ = 0, eta_ = 0;
};

// Well mixed, as PageKey requires (splitmix64).
inline PageKey key_of_page(uint64_t page) {
  uint64_t x = page + 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

class SimulatedPager {
 public:
  static constexpr size_t kBatch = 256, kProbesMax = 64, kTouchedMax = 16;
  uint64_t touches = 0, misses = 0, rescues = 0;
  uint64_t probes = 0, probes_touched = 0;
  // Of the touch of a probed page, in units of Policy::kMissPrice.
  uint32_t probe_price = Policy::kMissPrice / 4;

  SimulatedPager(const std::string& name, size_t frames, size_t pages, size_t batch = kBatch)
      : policy_(make_policy(name, frames, frames).value()),
        frames_(frames),
        batch_(batch),
        page_(pages) {
    for (size_t i = frames; i-- > 0;) free_.push_back(FrameId{static_cast<uint32_t>(i)});
    page_of_.resize(frames);
  }

  void touch(uint64_t page) {
    ++touches;
    Page& p = page_[page];
    if (p.is_probed) {
      p.is_probed = false;
      ++probes_touched;
      policy_->touched(p.frame);
      if (probes_touched % kTouchedMax == 0) probe();
      return;
    }
    if (p.state == State::kResident) return;
    if (p.state == State::kLeaving) {
      ++rescues;
      p.state = State::kResident;
      p.stays += 1;
      policy_->rescued(p.frame);
      return;
    }
    ++misses;
    if (free_.empty()) evict();
    p.frame = free_.back();
    free_.pop_back();
    p.state = State::kResident;
    page_of_[static_cast<uint32_t>(p.frame)] = page;
    policy_->filled(p.frame, key_of_page(page));
  }

  double miss_percent() const {
    return 100.0 * static_cast<double>(misses) / static_cast<double>(touches);
  }
  void forget_counts() { touches = misses = rescues = probes = probes_touched = halves_paid_ = 0; }
  Policy& policy() { return *policy_; }

 private:
  enum class State : uint8_t { kAbsent, kResident, kLeaving };
  struct Page {
    FrameId frame = kNoFrame;
    State state = State::kAbsent;
    // Rescues so far: a place in the resting line is good for the stay that it was taken in.
    uint32_t stays = 0;
    bool is_probed = false;
  };
  struct Place {
    uint64_t page;
    uint32_t stays;
  };

  bool is_at_rest(const Place& place) const {
    return page_[place.page].state == State::kLeaving && page_[place.page].stays == place.stays;
  }

  // Evicts a batch: chooses enough victims that the leaving frames reach their target, and frees
  // the oldest.
  void evict() {
    const size_t batch = std::min(batch_, std::max<size_t>(frames_ / 8, 1));
    std::vector<FrameId> chosen(batch + policy_->leaving_target() -
                                std::min(policy_->leaving_target(), policy_->leaving_count()));
    chosen.resize(policy_->choose_victims(chosen));
    for (const FrameId frame : chosen) {
      const uint64_t page = page_of_[static_cast<uint32_t>(frame)];
      page_[page].state = State::kLeaving;
      page_[page].is_probed = false;
      resting_.push_back({page, page_[page].stays});
    }
    for (size_t freed = 0; freed < batch && !resting_.empty();) {
      const Place place = resting_.front();
      resting_.pop_front();
      if (!is_at_rest(place)) continue;
      Page& p = page_[place.page];
      policy_->freed(p.frame);
      free_.push_back(p.frame);
      p = {kNoFrame, State::kAbsent, p.stays + 1, false};
      ++freed;
    }
    probe();
  }

  // Time passes by misses alone: a sixty-fourth of it pays for halves of probes.
  uint32_t paid() {
    if (probe_price == Policy::kNoProbes) return 0;
    const double half = probe_price / 2.0 / Policy::kMissPrice * 64;  // in misses
    const auto halves = static_cast<uint64_t>(static_cast<double>(misses) / half);
    const uint64_t before = std::exchange(halves_paid_, halves);
    return static_cast<uint32_t>(halves - std::min(halves, before));
  }

  void probe() {
    FrameId chosen[kProbesMax];
    const size_t count = policy_->choose_probes(chosen, probe_price, paid());
    for (size_t i = 0; i < count; ++i) {
      Page& p = page_[page_of_[static_cast<uint32_t>(chosen[i])]];
      if (p.state != State::kResident || p.is_probed) continue;
      ++probes;
      p.is_probed = true;
    }
  }

  std::unique_ptr<Policy> policy_;
  uint64_t halves_paid_ = 0;
  size_t frames_, batch_;
  std::vector<Page> page_;
  std::vector<uint64_t> page_of_;
  std::vector<FrameId> free_;
  std::deque<Place> resting_;
};

}  // namespace outcore::policy
