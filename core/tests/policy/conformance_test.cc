// What every policy must do, whatever it chooses: random histories, compared with a model.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/tests/policy/simulated_pager.h"

namespace outcore::policy {
namespace {

// A policy together with its expected state; checked after every step.
class Model {
 public:
  Model(const std::string& name, uint32_t frames_max)
      : policy_(make_policy(name, frames_max, frames_max / 2).value()),
        state_(frames_max),
        frames_max_(frames_max) {}

  void step(Dice& dice) {
    const FrameId frame{static_cast<uint32_t>(dice.below(frames_max_))};
    State& state = state_[static_cast<uint32_t>(frame)];
    switch (dice.below(8)) {
      case 0:
        choose(dice.below(9));
        break;
      case 1:
        policy_->set_capacity(dice.below(frames_max_ + 1));
        break;
      case 2:
        if (state == State::kUnknown) break;
        policy_->removed(frame);
        state = State::kUnknown;
        break;
      default:
        if (state == State::kUnknown) {
          policy_->filled(frame, key_of_page(dice.below(4 * frames_max_)));
          state = State::kResident;
        } else if (state == State::kLeaving) {
          const bool is_rescue = dice.below(3) == 0;
          is_rescue ? policy_->rescued(frame) : policy_->freed(frame);
          state = is_rescue ? State::kResident : State::kUnknown;
        }
    }
    check();
  }

  void choose(size_t count) {
    std::vector<FrameId> out(count);
    const size_t resident = count_of(State::kResident);
    const size_t chosen = policy_->choose_victims(out);
    ASSERT_EQ(chosen, std::min(count, resident))
        << "a victim for every place while one is resident";
    for (size_t i = 0; i < chosen; ++i) {
      ASSERT_LT(static_cast<uint32_t>(out[i]), frames_max_);
      State& state = state_[static_cast<uint32_t>(out[i])];
      ASSERT_EQ(state, State::kResident)
          << "a victim that is not resident: " << static_cast<uint32_t>(out[i]);
      state = State::kLeaving;
    }
  }

  void check() {
    ASSERT_EQ(policy_->resident_count(), count_of(State::kResident));
    ASSERT_EQ(policy_->leaving_count(), count_of(State::kLeaving));
    ASSERT_TRUE(policy_->is_valid());
  }

  void drain() {
    choose(frames_max_);
    ASSERT_EQ(policy_->resident_count(), 0u);
    for (uint32_t i = 0; i < frames_max_; ++i)
      if (state_[i] == State::kLeaving) policy_->freed(FrameId{i});
    ASSERT_EQ(policy_->leaving_count(), 0u);
    ASSERT_TRUE(policy_->is_valid());
  }

 private:
  enum class State : uint8_t { kUnknown, kResident, kLeaving };
  size_t count_of(State state) const {
    return static_cast<size_t>(std::count(state_.begin(), state_.end(), state));
  }

  std::unique_ptr<Policy> policy_;
  std::vector<State> state_;
  uint32_t frames_max_;
};

class EveryPolicy : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Policy> make(size_t frames_max, size_t capacity) {
    return make_policy(GetParam(), frames_max, capacity).value();
  }
  static void fill(Policy& policy, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) policy.filled(FrameId{i}, key_of_page(i));
  }
};

TEST_P(EveryPolicy, AgreesWithTheModelAfterEveryStepOfARandomHistory) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Dice dice(seed);
    Model model(GetParam(), static_cast<uint32_t>(1 + dice.below(100)));
    for (int i = 0; i < 2000; ++i) {
      model.step(dice);
      if (HasFatalFailure()) return;
    }
    model.drain();
    if (HasFatalFailure()) return;
  }
}

TEST_P(EveryPolicy, GivesUpEveryResidentFrameWhenAskedForAll) {
  auto policy = make(1000, 1000);
  fill(*policy, 1000);
  std::vector<FrameId> out(1500);
  ASSERT_EQ(policy->choose_victims(out), 1000u);
  EXPECT_EQ(std::set<FrameId>(out.begin(), out.begin() + 1000).size(), 1000u);
  EXPECT_EQ(policy->choose_victims(out), 0u);
}

TEST_P(EveryPolicy, ARemovedFrameIsNeverAVictim) {
  auto policy = make(100, 100);
  fill(*policy, 100);
  policy->removed(FrameId{17});
  std::vector<FrameId> out(100);
  ASSERT_EQ(policy->choose_victims(out), 99u);
  EXPECT_EQ(std::count(out.begin(), out.begin() + 99, FrameId{17}), 0);
}

TEST_P(EveryPolicy, ARescuedFrameCanBeAVictimAgain) {
  auto policy = make(1, 1);
  fill(*policy, 1);
  for (int i = 0; i < 3; ++i) {
    FrameId out[1];
    ASSERT_EQ(policy->choose_victims(out), 1u);
    EXPECT_EQ(out[0], FrameId{0});
    policy->rescued(FrameId{0});
  }
}

TEST_P(EveryPolicy, RestsAtMostHalfOfItsCapacity) {
  auto policy = make(1000, 1000);
  for (const size_t capacity : {0, 1, 2, 3, 100, 999, 1000}) {
    policy->set_capacity(capacity);
    EXPECT_LE(policy->leaving_target(), capacity / 2);
  }
}

TEST_P(EveryPolicy, ItsNameMakesTheSamePolicy) {
  const std::string name = make(10, 10)->name();
  EXPECT_EQ(make_policy(name, 10, 10).value()->name(), name);
}

TEST_P(EveryPolicy, MillionsOfFramesCostNothingUntilTheyAreUsed) {
  auto policy = make(50'000'000, 1000);
  fill(*policy, 100);
  EXPECT_LT(policy->metadata_bytes(), 1u << 20);
}

TEST_P(EveryPolicy, UsesAtMost32BytesAFrameAnd8APageOfHistory) {
  constexpr uint32_t kFrames = 1 << 16;
  auto policy = make(kFrames, kFrames);
  Dice dice(7);
  fill(*policy, kFrames);
  std::vector<FrameId> out(kFrames / 8);
  for (int round = 0; round < 40; ++round) {
    out.resize(policy->choose_victims(out));
    for (const FrameId frame : out) {
      policy->freed(frame);
      policy->filled(frame, key_of_page(dice.next()));
    }
  }
  EXPECT_LE(policy->metadata_bytes(), kFrames * (32 + 8));
}

TEST_P(EveryPolicy, MisuseIsABugThatStopsTheProgram) {
  auto policy = make(4, 4);
  policy->filled(FrameId{1}, 1);
  EXPECT_DEATH(policy->filled(FrameId{1}, 2), "bug");
  EXPECT_DEATH(policy->filled(FrameId{4}, 2), "bug");
  EXPECT_DEATH(policy->rescued(FrameId{1}), "bug");
  EXPECT_DEATH(policy->freed(FrameId{1}), "bug");
  EXPECT_DEATH(policy->removed(FrameId{2}), "bug");
  EXPECT_DEATH(policy->set_capacity(5), "bug");
}

INSTANTIATE_TEST_SUITE_P(All, EveryPolicy,
                         testing::Values("auto", "fifo", "fifo:cool=20%", "s3-fifo",
                                         "s3-fifo:small=50%,ghosts=20%",
                                         "s3-fifo:ghosts=0%,cool=10%", "di-mmap",
                                         "di-mmap:hot=0%,queue=0%",
                                         "di-mmap:hot=90%,queue=50%,buckets=3"),
                         [](const auto& chosen) {
                           std::string name;
                           for (const char* c = chosen.param; *c != 0; ++c)
                             name += std::isalnum(static_cast<unsigned char>(*c)) != 0 ? *c : '_';
                           return name;
                         });

}  // namespace
}  // namespace outcore::policy
