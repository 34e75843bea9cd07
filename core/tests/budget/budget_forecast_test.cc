// The forecast beside a made-up neighbour on a made-up machine, whose time goes on by itself.
#include "core/budget/budget_forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace outcore::budget {
namespace {

constexpr uint64_t kMebi = uint64_t{1} << 20;

// Machine: 1 GiB, of which the program has 100 MiB beside its budget, and fills that at once.
class Machine {
 public:
  static constexpr uint64_t kLimit = 1024 * kMebi, kOwn = 100 * kMebi;
  static constexpr uint64_t kMin = 16 * kMebi, kMax = 900 * kMebi;

  BudgetDecision step() {
    const BudgetDecision decision =
        forecast_.next({at_ns_, available() + noise, kLimit, budget, budget, least, pressure});
    shrinks += decision.budget_bytes < budget;
    growths += decision.budget_bytes > budget;
    budget = decision.budget_bytes;
    at_ns_ += period_ns;
    return decision;
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }
  // Periods until it holds; `most` if it does not.
  template <typename Condition>
  int steps_until(const Condition& holds, int most) {
    for (int i = 0; i < most; ++i) {
      if (holds()) return i;
      step();
    }
    return most;
  }
  // Beside a neighbour that wants so much, and takes what is there.
  void steps_beside(uint64_t wanted, int count) {
    for (int i = 0; i < count; ++i) {
      neighbour += std::min(wanted - neighbour, available());
      step();
    }
  }
  uint64_t available() const {
    const uint64_t used = kOwn + neighbour + budget;
    return kLimit - std::min(kLimit, used);
  }
  // Where it stays if nothing happens.
  static uint64_t settled() {
    const uint64_t margin = BudgetForecast::margin_of(kLimit);
    return kLimit - kOwn - margin - margin / 2;
  }

  uint64_t budget = 400 * kMebi, neighbour = 0, noise = 0, least = 0;
  uint64_t period_ns = BudgetForecast::kPeriodNs;
  std::optional<os::MemoryPressure> pressure;
  int shrinks = 0, growths = 0;

 private:
  BudgetForecast forecast_{kMin, kMax};
  uint64_t at_ns_ = 77'000'000'000;
};

TEST(BudgetMargin, IsATwentiethButNotLittleAndNeverMost) {
  constexpr uint64_t kGibi = 1024 * kMebi;
  EXPECT_EQ(BudgetForecast::margin_of(256 * kGibi), 256 * kGibi / 20);
  EXPECT_EQ(BudgetForecast::margin_of(kGibi), 64 * kMebi);
  EXPECT_EQ(BudgetForecast::margin_of(64 * kMebi), 16 * kMebi);
  EXPECT_EQ(BudgetForecast::margin_of(0), 0u);
}

TEST(BudgetForecast, WithAllMemoryToItselfItGrowsUntilTheMarginAndTheSlackAreLeft) {
  Machine machine;
  machine.steps(40);
  EXPECT_LE(machine.budget, Machine::settled());
  EXPECT_GT(machine.budget, Machine::settled() - Machine::settled() / 50);
  EXPECT_EQ(machine.shrinks, 0);
}

TEST(BudgetForecast, NothingGrowsBeforeFourCalmPeriods) {
  Machine machine;
  machine.steps(static_cast<int>(BudgetForecast::kCalmPeriods));
  EXPECT_EQ(machine.growths, 0);
  machine.step();
  EXPECT_EQ(machine.growths, 1);
}

TEST(BudgetForecast, NoStepUpIsMoreThanAnEighth) {
  Machine machine;
  machine.budget = 100 * kMebi;
  for (int i = 0; i < 40; ++i) {
    const uint64_t before = machine.budget;
    machine.step();
    EXPECT_LE(machine.budget, before + before / 8);
  }
  EXPECT_GT(machine.growths, 10);
}

TEST(BudgetForecast, ANeighbourThatGrowsSteadilyNeverFindsLessThanTheMargin) {
  Machine machine;
  machine.steps(40);
  const uint64_t margin = BudgetForecast::margin_of(Machine::kLimit);
  while (machine.budget > 2 * Machine::kMin) {
    machine.neighbour += 8 * kMebi;  // 80 MiB a second
    EXPECT_GE(machine.available(), margin) << machine.neighbour / kMebi;
    machine.step();
    ASSERT_LT(machine.neighbour, Machine::kLimit);
  }
  EXPECT_GT(machine.shrinks, 10);
}

TEST(BudgetForecast, WhileANeighbourGrowsTheBudgetLeavesItWhatItWillTakeInTenPeriods) {
  Machine machine;
  machine.steps(40);
  constexpr uint64_t kEach = 8 * kMebi;
  for (int i = 0; i < 20; ++i) {
    machine.neighbour += kEach;
    machine.step();
  }
  const uint64_t margin = BudgetForecast::margin_of(Machine::kLimit);
  EXPECT_GE(machine.available() + kMebi, margin + BudgetForecast::kPeriodsAhead * kEach);
}

TEST(BudgetForecast, WhatANeighbourTakesAtOnceIsNoTrend) {
  Machine machine;
  machine.steps(40);
  const uint64_t before = machine.budget;
  machine.neighbour = 90 * kMebi;
  const BudgetDecision decision = machine.step();
  EXPECT_TRUE(decision.is_urgent);
  EXPECT_EQ(machine.shrinks, 1);
  EXPECT_GE(machine.budget, before - 90 * kMebi) << "no more than what was taken";
  machine.steps(20);
  EXPECT_EQ(machine.shrinks, 1);
}

TEST(BudgetForecast, ANeighbourThatTakesAllThereIsGetsWhatItWantsWithinASecond) {
  Machine machine;
  machine.steps(40);
  machine.steps_beside(500 * kMebi, 10);
  EXPECT_EQ(machine.neighbour, 500 * kMebi);
  EXPECT_GE(machine.available(), BudgetForecast::margin_of(Machine::kLimit));
}

TEST(BudgetForecast, WhatComesBackIsTakenBackWithinFourSeconds) {
  Machine machine;
  machine.steps(40);
  const uint64_t before = machine.budget;
  machine.steps_beside(500 * kMebi, 10);
  ASSERT_LT(machine.budget, before / 2);
  machine.neighbour = 0;
  const int taken = machine.steps_until([&] { return machine.budget >= before * 9 / 10; }, 100);
  EXPECT_LE(taken, 40);
  EXPECT_GE(taken, 4) << "not before it is calm";
}

TEST(BudgetForecast, NoiseOfLessThanASixthOfTheSlackMovesNothing) {
  Machine machine;
  std::mt19937_64 random(1);
  const uint64_t slack = BudgetForecast::margin_of(Machine::kLimit) / 2;
  const auto steps = [&](int count) {
    for (int i = 0; i < count; ++i) {
      machine.noise = random() % (slack / 3);  // up and down by a sixth
      machine.step();
    }
  };
  steps(60);
  machine.growths = 0;
  steps(3000);
  EXPECT_EQ(machine.shrinks, 0);
  EXPECT_LE(machine.growths, 2) << "no more than it takes to find the place";
}

TEST(BudgetForecast, PressureAloneTakesHalfStepByStepAndNoMore) {
  Machine machine;
  machine.steps(40);
  const uint64_t before = machine.budget;
  os::MemoryPressure pressure{30, 2, 1000};
  for (int i = 0; i < 100; ++i) {
    pressure.stalled_us += 30'000;
    machine.pressure = pressure;
    const uint64_t last = machine.budget;
    machine.step();
    EXPECT_GE(machine.budget, last - last / 8 - 4096);
  }
  const uint64_t could =
      Machine::kLimit - Machine::kOwn - BudgetForecast::margin_of(Machine::kLimit);
  EXPECT_LT(machine.budget, before * 6 / 10);
  EXPECT_GE(machine.budget + 4096, could / 2);
  machine.pressure->some_percent = 1;
  EXPECT_LT(machine.steps_until([&] { return machine.budget >= before * 9 / 10; }, 100), 30);
}

TEST(BudgetForecast, UnderPressureNothingGrows) {
  Machine machine;
  machine.pressure = os::MemoryPressure{BudgetForecast::kSomePercent, 0, 5};
  machine.budget = 500 * kMebi;  // more than half of what could be had
  machine.steps(60);
  EXPECT_EQ(machine.budget, 500 * kMebi) << "and stalls that are over take nothing";
}

TEST(BudgetForecast, APressureThatStaysDoesNotStarveIt) {
  Machine machine;
  os::MemoryPressure pressure{60, 40, 0};
  machine.budget = 20 * kMebi;
  for (int i = 0; i < 100; ++i) {
    pressure.stalled_us += 50'000;
    machine.pressure = pressure;
    machine.step();
  }
  EXPECT_GT(machine.budget, 300 * kMebi) << "half of what could be had is ours";
}

TEST(BudgetForecast, TheBoundsHold) {
  Machine machine;
  machine.neighbour = Machine::kLimit;
  machine.steps(20);
  EXPECT_EQ(machine.budget, Machine::kMin);
  machine.least = 33 * kMebi;
  machine.steps(3);
  EXPECT_EQ(machine.budget, Machine::kMin) << "what is to be pinned is no reason to grow";
  machine.budget = 40 * kMebi;
  machine.steps(3);
  EXPECT_EQ(machine.budget, 33 * kMebi) << "with less the pager cannot do";
  BudgetForecast forecast(kMebi, 50 * kMebi);
  uint64_t budget = 40 * kMebi;
  for (uint64_t at_ns = 1'000'000'000; at_ns < 10'000'000'000; at_ns += 100'000'000)
    budget =
        forecast.next({at_ns, Machine::kLimit, Machine::kLimit, budget, budget, 0, std::nullopt})
            .budget_bytes;
  EXPECT_EQ(budget, 50 * kMebi);
}

TEST(BudgetForecast, ALimitThatIsLoweredWhileItRunsIsHeeded) {
  BudgetForecast forecast(kMebi, 1024 * kMebi);
  const uint64_t budget = 600 * kMebi;
  const BudgetDecision before =
      forecast.next({1, 424 * kMebi, 1024 * kMebi, budget, budget, 0, std::nullopt});
  EXPECT_EQ(before.budget_bytes, budget);
  const BudgetDecision after = forecast.next(
      {BudgetForecast::kPeriodNs, 24 * kMebi, 624 * kMebi, budget, budget, 0, std::nullopt});
  EXPECT_EQ(after.budget_bytes, 560 * kMebi) << "64 MiB are left to others";
}

TEST(BudgetForecast, ABudgetThatIsNotUsedShrinksAllTheSame) {
  BudgetForecast forecast(kMebi, 1024 * kMebi);
  const BudgetDecision decision =
      forecast.next({1, 200 * kMebi, 1024 * kMebi, 100 * kMebi, 600 * kMebi, 0, std::nullopt});
  EXPECT_EQ(decision.budget_bytes, 236 * kMebi) << "or its pages would take what is not there";
}

TEST(BudgetForecast, ALateSampleIsNoFastNeighbour) {
  Machine machine;
  machine.steps(40);
  // A shrink took two seconds each time: 4 MiB are two a second, not forty.
  for (int i = 0; i < 5; ++i) {
    machine.neighbour += 4 * kMebi;
    machine.period_ns = 2'000'000'000;
    machine.step();
  }
  EXPECT_EQ(machine.shrinks, 0);
}

}  // namespace
}  // namespace outcore::budget
