// RandomProbes: any policy, which wants random pages probed. A real trial needs more frames than a
// simulation has.
//
// It checks what the engine promises: touched frames are resident, and were to be probed.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/assert.h"
#include "core/tests/sim/random.h"
#include "outcore/policy.h"

namespace outcore::sim {

class RandomProbes final : public Policy {
 public:
  RandomProbes(std::unique_ptr<Policy> policy, size_t frames_max, uint64_t seed, uint64_t permille)
      : policy_(std::move(policy)), random_(seed), permille_(permille), state_(frames_max) {}

  void filled(FrameId frame, PageKey key) override {
    policy_->filled(frame, key);
    enter(frame);
  }
  void guessed(FrameId frame, PageKey key) override {
    policy_->guessed(frame, key);
    enter(frame);
  }
  size_t choose_victims(std::span<FrameId> out) override {
    const size_t count = policy_->choose_victims(out);
    for (size_t i = 0; i < count; ++i) state_of(out[i]) = State::kLeaving;
    return count;
  }
  void rescued(FrameId frame) override {
    OC_CHECK(state_of(frame) == State::kLeaving);
    policy_->rescued(frame);
    state_of(frame) = State::kResident;
  }
  void freed(FrameId frame) override {
    OC_CHECK(state_of(frame) == State::kLeaving);
    policy_->freed(frame);
    state_of(frame) = State::kUnknown;
  }
  void removed(FrameId frame) override {
    OC_CHECK(state_of(frame) != State::kUnknown);
    policy_->removed(frame);
    state_of(frame) = State::kUnknown;
  }
  size_t choose_probes(std::span<FrameId> out, uint32_t price, uint32_t) override {
    OC_CHECK(price != 0);
    if (price == kNoProbes) return 0;
    size_t count = 0;
    for (uint32_t frame = 0; frame < used_once_ && count < out.size(); ++frame) {
      State& state = state_[frame];
      if (state != State::kResident && state != State::kProbed) continue;
      if (!random_.chance(permille_)) continue;
      state = State::kProbed;  // now and then once more, as a trial may
      out[count++] = FrameId{frame};
    }
    return count;
  }
  void touched(FrameId frame) override {
    // Or a victim since, which was found touched: then it has been rescued already.
    OC_CHECK(state_of(frame) == State::kProbed || state_of(frame) == State::kResident);
    state_of(frame) = State::kResident;
    policy_->touched(frame);
  }

  size_t leaving_target() const override { return policy_->leaving_target(); }
  void set_capacity(size_t frames) override { policy_->set_capacity(frames); }
  PageKey key_of(FrameId frame) const override { return policy_->key_of(frame); }
  size_t resident_count() const override { return policy_->resident_count(); }
  size_t leaving_count() const override { return policy_->leaving_count(); }
  bool is_valid() const override { return policy_->is_valid(); }
  std::string name() const override { return policy_->name(); }
  size_t metadata_bytes() const override { return policy_->metadata_bytes(); }

 private:
  enum class State : uint8_t { kUnknown, kResident, kProbed, kLeaving };
  State& state_of(FrameId frame) {
    OC_CHECK(static_cast<uint32_t>(frame) < state_.size());
    return state_[static_cast<uint32_t>(frame)];
  }
  void enter(FrameId frame) {
    OC_CHECK(state_of(frame) == State::kUnknown);
    state_of(frame) = State::kResident;
    used_once_ = std::max(used_once_, static_cast<uint32_t>(frame) + 1);
  }

  std::unique_ptr<Policy> policy_;
  Random random_;
  const uint64_t permille_;
  std::vector<State> state_;
  uint32_t used_once_ = 0;
};

}  // namespace outcore::sim
