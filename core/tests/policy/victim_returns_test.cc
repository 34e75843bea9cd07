// VictimReturns: of which period a returning victim was, and how two queues compare.
#include "core/policy/victim_returns.h"

#include <gtest/gtest.h>

namespace outcore::policy {
namespace {

void leave(VictimReturns& returns, int count) {
  for (int i = 0; i < count; ++i) returns.leave();
}

void come_back(VictimReturns& returns, int count, uint64_t age) {
  for (int i = 0; i < count; ++i) returns.come_back(age);
}

TEST(VictimReturns, KnowsAPeriodWhenItIsOverAndLongEnough) {
  VictimReturns returns;
  leave(returns, 11);
  returns.begin_period();
  EXPECT_FALSE(returns.are_known(1)) << "11 are too few";
  leave(returns, 12);
  EXPECT_FALSE(returns.are_known(1)) << "these have had no time";
  returns.begin_period();
  EXPECT_TRUE(returns.are_known(1));
  EXPECT_FALSE(returns.are_known(2));
}

TEST(VictimReturns, CountsAReturnForThePeriodInWhichItLeft) {
  VictimReturns returns;
  leave(returns, 30);
  returns.begin_period();
  leave(returns, 20);
  come_back(returns, 10, 19);  // of this period
  come_back(returns, 10, 20);  // of the one before: the newest of it
  EXPECT_TRUE(returns.are_many(1));
  returns.begin_period();
  EXPECT_TRUE(returns.are_many(1)) << "10 of 20";
  EXPECT_TRUE(returns.are_many(2)) << "10 of 30";
  VictimReturns others;
  leave(others, 30);
  come_back(others, 9, 29);
  come_back(others, 100, 30);  // longer ago than is kept
  others.begin_period();
  EXPECT_FALSE(others.are_many(1)) << "9 of 30";
}

TEST(VictimReturns, AreFarBelowOthersIfFewerThanHalfAsManyComeBack) {
  for (const int back : {0, 11, 12, 40}) {
    VictimReturns returns, others;
    leave(returns, 40), leave(others, 100);
    come_back(returns, back, 0);
    come_back(others, 60, 0);
    returns.begin_period(), others.begin_period();
    EXPECT_EQ(returns.are_far_below(others, 1), back < 12) << back;
    EXPECT_FALSE(others.are_far_below(others, 1));
  }
}

TEST(VictimReturns, NoMoreComeBackThanHaveLeft) {
  VictimReturns returns, others;
  leave(returns, 12), leave(others, 12);
  come_back(returns, 100, 0), come_back(others, 12, 0);
  returns.begin_period(), others.begin_period();
  EXPECT_FALSE(others.are_far_below(returns, 1));
}

}  // namespace
}  // namespace outcore::policy
