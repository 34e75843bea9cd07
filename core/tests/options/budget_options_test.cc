// budget = auto and its bounds, in all the places where they can be set.
#include <gmock/gmock.h>

#include "core/tests/options/resolve_scene.h"

namespace outcore::runtime {
namespace {

class BudgetOptions : public ResolveScene {
 protected:
  static constexpr uint64_t kMiB = kMebibyte;
};

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(BudgetOptions, ABudgetThatFollowsBeginsWithTheDefault) {
  environment_["OUTCORE_BUDGET"] = "auto";
  EXPECT_TRUE(resolved().adapts_budget);
  EXPECT_EQ(resolved().budget_bytes, 500 * kMiB);
  EXPECT_EQ(resolved().source_of("budget"),
            "OUTCORE_BUDGET: begins with half of 1000 MiB available in cgroup /x");
  EXPECT_THAT(resolved().describe(), StartsWith("budget = auto (OUTCORE_BUDGET: begins"));
  EXPECT_EQ(resolved().largest_budget(), 500 * kMiB) << "no bound was named";
  environment_["OUTCORE_BUDGET_MAX"] = "100M";
  EXPECT_EQ(resolved().budget_bytes, 100 * kMiB) << "within its bounds from the beginning";
  EXPECT_EQ(resolved().largest_budget(), 100 * kMiB);
  environment_ = {{"OUTCORE_BUDGET", "auto"}, {"OUTCORE_BUDGET_MIN", "800M"}};
  EXPECT_EQ(resolved().budget_bytes, 800 * kMiB);
}

TEST_F(BudgetOptions, OfABudgetThatFollowsAndOneOfASizeTheProgramsWins) {
  environment_["OUTCORE_BUDGET"] = "auto";
  RuntimeOptions program;
  program.budget_bytes = 70 * kMiB;
  EXPECT_FALSE(resolved(program).adapts_budget);
  EXPECT_EQ(resolved(program).budget_bytes, 70 * kMiB);
  program.adapts_budget = true;
  EXPECT_TRUE(resolved(program).adapts_budget);
  EXPECT_EQ(resolved(program).budget_bytes, 70 * kMiB) << "where it begins";
  environment_["OUTCORE_BUDGET"] = "4G";
  program.budget_bytes.reset();
  EXPECT_TRUE(resolved(program).adapts_budget);
  EXPECT_EQ(resolved(program).budget_bytes, 500 * kMiB);
}

TEST_F(BudgetOptions, TheLeastOfABudgetThatFollowsIsNeverAboveItsMost) {
  environment_ = {{"OUTCORE_BUDGET", "auto"}, {"OUTCORE_BUDGET_MAX", "8M"}};
  EXPECT_EQ(resolved().budget_min_bytes, 8 * kMiB) << "the default gives way";
  environment_["OUTCORE_BUDGET_MIN"] = "9M";
  EXPECT_EQ(refusal(),
            "budget_min = 9 MiB (OUTCORE_BUDGET_MIN) must not be above budget_max = 8 MiB "
            "(OUTCORE_BUDGET_MAX): set both");
}

TEST_F(BudgetOptions, ALeastThatIsAllTheMemoryIsRefused) {
  environment_ = {{"OUTCORE_BUDGET", "auto"}, {"OUTCORE_BUDGET_MIN", "2G"}};
  EXPECT_EQ(refusal(),
            "budget_min = 2 GiB (OUTCORE_BUDGET_MIN) is not less than all the memory, 2 GiB: "
            "name a smaller one, or leave it out");
}

TEST_F(BudgetOptions, WhereFillsMayNotWaitABudgetThatFollowsIsRefused) {
  environment_ = {{"OUTCORE_BUDGET", "auto"}, {"OUTCORE_WAIT_MAX", "0s"}};
  EXPECT_THAT(refusal(), AllOf(StartsWith("wait_max = "), HasSubstr("budget = auto"),
                               HasSubstr("give wait_max a time, or the budget a size")));
  environment_["OUTCORE_BUDGET"] = "6M";
  EXPECT_EQ(resolved().budget_bytes, 6 * kMiB);
}

TEST_F(BudgetOptions, BoundsOfABudgetOfASizeAreRefused) {
  environment_["OUTCORE_BUDGET_MIN"] = "64M";
  EXPECT_EQ(refusal(),
            "budget_min = 64 MiB (OUTCORE_BUDGET_MIN) is a bound of budget = auto, but budget = "
            "500 MiB (default: half of 1000 MiB available in cgroup /x): set budget to auto, or "
            "leave out budget_min");
  environment_ = {{"OUTCORE_BUDGET", "1G"}, {"OUTCORE_BUDGET_MAX", "2G"}};
  EXPECT_THAT(refusal(), AllOf(StartsWith("budget_max = 2 GiB (OUTCORE_BUDGET_MAX) "),
                               HasSubstr("budget = 1 GiB (OUTCORE_BUDGET)")));
  RuntimeOptions program;
  program.budget_bytes = kMiB, program.budget_min_bytes = kMiB;
  environment_.clear();
  EXPECT_THAT(refusal(program), StartsWith("budget_min = 1 MiB (the program) "));
}

TEST_F(BudgetOptions, BoundsOfAConfigFileAreNotForAProgramThatNamesASize) {
  config("budget = \"auto\"\nbudget_min = \"64M\"\nbudget_max = \"none\"\n");
  EXPECT_TRUE(resolved().adapts_budget);
  RuntimeOptions program;
  program.budget_bytes = 5 * kMiB;
  EXPECT_FALSE(resolved(program).adapts_budget);
  EXPECT_EQ(resolved(program).budget_bytes, 5 * kMiB);
  environment_["OUTCORE_BUDGET"] = "6M";
  EXPECT_EQ(resolved().budget_bytes, 6 * kMiB);
}

}  // namespace
}  // namespace outcore::runtime
