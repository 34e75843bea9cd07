// The automatic policy against each policy alone, in misses; and what a trial costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/policy/policy_trial.h"
#include "core/tests/policy/simulated_pager.h"
#include "tests/share.h"

namespace outcore::policy {
namespace {

// The smallest memory that has a trial.
constexpr uint64_t kTrialFrames = uint64_t{PolicyTrial::kFramesLeast} << PolicyTrial::kShiftLeast;
constexpr uint64_t kTrialPages = kTrialFrames * 4;

using Workload = std::function<uint64_t(uint64_t, Dice&)>;

const Zipf& popular() {
  static const Zipf zipf(kTrialPages, .99);
  return zipf;
}

const Workload kZipf = [](uint64_t, Dice& dice) { return popular().next(dice); };
const Workload kZipfAndScan = [](uint64_t i, Dice& dice) {
  return i % 4 == 3 ? i / 4 % kTrialPages : popular().next(dice);
};
const Workload kLoop = [](uint64_t i, Dice&) { return i % (kTrialFrames * 12 / 10); };
const Workload kUniform = [](uint64_t, Dice& dice) { return dice.below(kTrialPages); };
// The popular pages become others, a few at a time.
const Workload kMoving = [](uint64_t i, Dice& dice) {
  return (popular().next(dice) + i / (4 * kTrialFrames) * (kTrialFrames / 5)) % kTrialPages;
};
// A window of the size of memory that slides over the pages.
const Workload kWindow = [](uint64_t i, Dice& dice) {
  return (i / 8 + dice.below(kTrialFrames)) % kTrialPages;
};

struct Outcome {
  double misses = 0, cost = 0;  // in percent of the touches; the cost has soft faults, too
  uint64_t probes = 0;
  PolicyMetrics policy;
};

// Of the touches from `from` on.
Outcome run(SimulatedPager& pager, const Workload& next, uint64_t seed, uint64_t from,
            uint64_t touches) {
  Dice dice(seed);
  for (uint64_t i = 0; i < touches; ++i) {
    if (i == from) pager.forget_counts();
    pager.touch(next(i, dice));
  }
  EXPECT_TRUE(pager.policy().is_valid());
  const double soft = static_cast<double>(pager.rescues + pager.probes_touched) *
                      pager.probe_price / Policy::kMissPrice;
  return {pager.miss_percent(),
          pager.miss_percent() + 100 * soft / static_cast<double>(pager.touches), pager.probes,
          pager.policy().metrics()};
}
TEST(AutoPolicy, CostsHardlyMoreThanTheBestPolicyOfEachLoad) {
  struct Load {
    const char* name;
    const Workload* next;
  };
  constexpr uint64_t kTouches = 80 * kTrialFrames;
  uint64_t seed = 0;
  for (const Load& load : scene::share_of(
           {Load{"zipf", &kZipf}, Load{"zipf and scan", &kZipfAndScan}, Load{"loop", &kLoop},
            Load{"uniform", &kUniform}, Load{"moving", &kMoving}, Load{"window", &kWindow}})) {
    SCOPED_TRACE(load.name);
    ++seed;
    double best = 100;
    for (const char* name : {"s3-fifo", "di-mmap", "fifo"}) {
      SimulatedPager pager(name, kTrialFrames, kTrialPages);
      best = std::min(best, run(pager, *load.next, seed, kTouches, kTouches).cost);
    }
    SimulatedPager pager("auto", kTrialFrames, kTrialPages);
    const Outcome chosen = run(pager, *load.next, seed, kTouches, kTouches);
    EXPECT_LE(chosen.cost, best * 1.08);
    EXPECT_LE(chosen.policy.changes, 2u);
  }
}

TEST(AutoPolicy, TakesAnotherWhereThePopularPagesMove) {
  SimulatedPager pager("auto", kTrialFrames, kTrialPages);
  const Outcome outcome = run(pager, kMoving, 3, 120 * kTrialFrames, 60 * kTrialFrames);
  EXPECT_NE(outcome.policy.policy, "s3-fifo");
  EXPECT_EQ(pager.policy().taken(), outcome.policy.policy);
  EXPECT_GT(outcome.probes, 0u);
  SimulatedPager s3("s3-fifo", kTrialFrames, kTrialPages);
  EXPECT_LT(outcome.misses,
            run(s3, kMoving, 3, 120 * kTrialFrames, 60 * kTrialFrames).misses * 0.9);
}

TEST(AutoPolicy, FollowsALoadThatChanges) {
  constexpr uint64_t kPhase = 20 * kTrialFrames;
  const Workload kPhases = [&](uint64_t i, Dice& dice) {
    const Workload* const loads[] = {&kZipf, &kLoop, &kWindow};
    return (*loads[i / kPhase % 3])(i, dice);
  };
  const auto misses_of = [&](const char* name) {
    SimulatedPager pager(name, kTrialFrames, kTrialPages);
    return run(pager, kPhases, 1, 0, 6 * kPhase).misses;
  };
  const double best = std::min({misses_of("s3-fifo"), misses_of("di-mmap"), misses_of("fifo")});
  EXPECT_LT(misses_of("auto"), best) << "s3-fifo follows by itself, but not as soon";
}

TEST(AutoPolicy, TellsWhatTwiceTheMemoryWouldMiss) {
  for (const Workload* next : {&kZipf, &kZipfAndScan, &kUniform}) {
    SimulatedPager pager("auto", kTrialFrames, kTrialPages),
        twice("s3-fifo", 2 * kTrialFrames, kTrialPages);
    const Outcome outcome = run(pager, *next, 7, 40 * kTrialFrames, 80 * kTrialFrames);
    ASSERT_EQ(outcome.policy.policy, "s3-fifo");
    const double told = static_cast<double>(outcome.policy.cost_of_twice) /
                        static_cast<double>(outcome.policy.candidates[0].cost);
    EXPECT_NEAR(told,
                run(twice, *next, 7, 40 * kTrialFrames, 80 * kTrialFrames).misses / outcome.misses,
                .1);
  }
}

TEST(AutoPolicy, StopsAtTheProbesThatTimePaysFor) {
  for (const uint32_t price : {uint32_t{16}, uint32_t{64}, 2 * Policy::kMissPrice}) {
    SimulatedPager pager("auto", kTrialFrames, kTrialPages);
    pager.probe_price = price;
    const Outcome outcome = run(pager, kZipf, 5, 0, 100 * kTrialFrames);
    // In halves of a probe's price. A trial begins in debt, and may be in debt by so many at most.
    const double paid = static_cast<double>(pager.misses) * Policy::kMissPrice / 32 / price;
    const double debt = 8.0 * PolicyTrial::kFramesLeast;
    if (price < Policy::kMissPrice) {  // otherwise it does not come out of its first debt
      EXPECT_GT(pager.probes_touched, 0u) << price;
    }
    EXPECT_LE(static_cast<double>(pager.probes + pager.probes_touched), paid + debt + 100) << price;
    EXPECT_EQ(outcome.policy.probes_touched, pager.probes_touched);
  }
}

TEST(AutoPolicy, NeverProbesWhatIsLeaving) {
  for (const Workload* next : {&kZipf, &kZipfAndScan, &kLoop, &kUniform, &kMoving, &kWindow}) {
    SimulatedPager pager("auto:wait=0%", kTrialFrames, kTrialPages);
    run(pager, *next, 9, 0, 40 * kTrialFrames);
    EXPECT_GT(pager.probes, 0u);
    EXPECT_EQ(pager.leaving_to_probe, 0u);
  }
}

uint64_t all_costs(const Policy& policy) {
  const PolicyMetrics metrics = policy.metrics();
  uint64_t sum = metrics.cost_of_twice;
  for (const auto& candidate : metrics.candidates) sum += candidate.cost;
  return sum;
}

// A page that could not leave, or is no longer pinned, was not touched.
TEST(AutoPolicy, TakesNothingForATouchButTouches) {
  SimulatedPager pager("auto:wait=0%", kTrialFrames, kTrialPages);
  run(pager, kUniform, 3, 0, 40 * kTrialFrames);
  Policy& policy = pager.policy();
  const uint64_t before = all_costs(policy);
  ASSERT_GT(before, 0u);
  std::vector<FrameId> out(2048);
  ASSERT_EQ(policy.choose_victims(out), out.size());
  for (const FrameId frame : out) {
    policy.put_back(frame);
    const PageKey key = policy.key_of(frame);
    policy.removed(frame);
    policy.returned(frame, key);
    EXPECT_TRUE(policy.is_resident(frame));
  }
  EXPECT_EQ(all_costs(policy), before);
  ASSERT_EQ(policy.choose_victims(out), out.size());
  for (const FrameId frame : out) policy.rescued(frame);
  EXPECT_GT(all_costs(policy), before);
}

TEST(AutoPolicy, ProbesNothingInASmallMemory) {
  SimulatedPager pager("auto", kTrialFrames - 32, kTrialPages);
  const Outcome outcome = run(pager, kMoving, 3, 0, 20 * kTrialFrames);
  EXPECT_EQ(outcome.probes, 0u);
  EXPECT_EQ(outcome.policy.policy, "s3-fifo");
}

TEST(AutoPolicy, IsS3FifoWherePagesCannotBeProbed) {
  SimulatedPager pager("auto", kTrialFrames, kTrialPages), s3("s3-fifo", kTrialFrames, kTrialPages);
  pager.probe_price = Policy::kNoProbes;
  const Outcome outcome = run(pager, kMoving, 3, 0, 20 * kTrialFrames);
  EXPECT_EQ(outcome.probes, 0u);
  EXPECT_EQ(outcome.policy.changes, 0u);
  EXPECT_EQ(outcome.misses, run(s3, kMoving, 3, 0, 20 * kTrialFrames).misses);
}

TEST(AutoPolicy, ReturnsToS3FifoWhenPagesCannotBeProbedAnyMore) {
  SimulatedPager pager("auto", kTrialFrames, kTrialPages);
  ASSERT_NE(run(pager, kMoving, 3, 0, 40 * kTrialFrames).policy.policy, "s3-fifo");
  pager.probe_price = Policy::kNoProbes;
  EXPECT_EQ(run(pager, kMoving, 4, 0, 5 * kTrialFrames).policy.policy, "s3-fifo");
}

TEST(AutoPolicy, ReturnsToS3FifoWhenMemoryBecomesTooSmallForATrial) {
  SimulatedPager pager("auto", kTrialFrames, kTrialPages);
  ASSERT_NE(run(pager, kMoving, 3, 0, 40 * kTrialFrames).policy.policy, "s3-fifo");
  pager.policy().set_capacity(kTrialFrames / 2);
  EXPECT_EQ(run(pager, kMoving, 4, 0, kTrialFrames).policy.policy, "s3-fifo");
}

TEST(AutoPolicy, GivesUpEveryFrameInTheMiddleOfAChange) {
  SimulatedPager pager("auto", kTrialFrames, kTrialPages);
  Dice dice(3);
  for (uint64_t i = 0; pager.policy().metrics().changes == 0; ++i) {
    ASSERT_LT(i, 60 * kTrialFrames);
    pager.touch(kMoving(i, dice));
  }
  Policy& policy = pager.policy();
  std::vector<FrameId> out(policy.resident_count());
  ASSERT_EQ(policy.choose_victims(out), out.size());
  EXPECT_EQ(policy.resident_count(), 0u);
  std::sort(out.begin(), out.end());
  EXPECT_EQ(std::adjacent_find(out.begin(), out.end()), out.end());
  for (const FrameId frame : out) policy.freed(frame);
  EXPECT_EQ(policy.leaving_count(), 0u);
  EXPECT_TRUE(policy.is_valid());
}

TEST(AutoPolicy, TakesNoParametersOfThePoliciesItChoosesFrom) {
  const auto made = make_policy("auto:hot=75%", 100, 100);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.message().find("there is no parameter 'hot'"), std::string::npos)
      << made.message();
}

}  // namespace
}  // namespace outcore::policy
