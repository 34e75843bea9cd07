#include "core/recording/return_times.h"

#include <gtest/gtest.h>

#include <cmath>

namespace outcore::recording {
namespace {

double share_before(const ReturnTimes& times, uint32_t page_class, double age) {
  std::mt19937_64 random(1);
  constexpr int kDraws = 20'000;
  int before = 0;
  for (int i = 0; i < kDraws; ++i) before += times.draw(page_class, random) < age;
  return static_cast<double>(before) / kDraws;
}
void take_over(ReturnTimes* times) {
  times->begin();
  times->end();
}

TEST(ReturnTimes, BucketsAreHalfOctaves) {
  EXPECT_EQ(ReturnTimes::bucket_of(0), 0u);
  EXPECT_EQ(ReturnTimes::bucket_of(1), 1u);
  EXPECT_EQ(ReturnTimes::bucket_of(2), 3u);
  EXPECT_EQ(ReturnTimes::bucket_of(1024), 21u);
  EXPECT_EQ(ReturnTimes::bucket_of(1e30), ReturnTimes::kBuckets - 1);
}

TEST(ReturnTimes, WhatWasNeverSeenReturnsNever) {
  ReturnTimes times;
  take_over(&times);
  EXPECT_EQ(share_before(times, ReturnTimes::kNew, ReturnTimes::kNever), 0);
  times.note_gone(ReturnTimes::kNew, 100);
  take_over(&times);
  EXPECT_EQ(share_before(times, ReturnTimes::kNew, ReturnTimes::kNever), 0);
}

TEST(ReturnTimes, AreDrawnAsTheyWereNoted) {
  ReturnTimes times;
  std::mt19937_64 random(2);
  std::exponential_distribution<double> after(1.0 / 1000);
  for (int i = 0; i < 10'000; ++i) times.note_return(ReturnTimes::kNew, after(random));
  take_over(&times);
  for (const double age : {300.0, 1000.0, 3000.0})
    EXPECT_NEAR(share_before(times, ReturnTimes::kNew, age), 1 - std::exp(-age / 1000), 0.03)
        << age;
}

// Half of them are not waited for long enough: that says nothing of when they would return.
TEST(ReturnTimes, ThoseThatAreGoneCountForAsLongAsTheyWereWaitedFor) {
  ReturnTimes times;
  std::mt19937_64 random(3);
  std::exponential_distribution<double> after(1.0 / 1000);
  for (int i = 0; i < 10'000; ++i) {
    const double age = after(random);
    if (i % 2 == 0 || age <= 700)
      times.note_return(ReturnTimes::kNew, age);
    else
      times.note_gone(ReturnTimes::kNew, 700);
  }
  take_over(&times);
  EXPECT_NEAR(share_before(times, ReturnTimes::kNew, 3000), 1 - std::exp(-3), 0.04);
}

TEST(ReturnTimes, ThoseThatAreStillOutCountUntilTheNextLookAlone) {
  ReturnTimes times;
  for (int i = 0; i < 100; ++i) times.note_return(ReturnTimes::kNew, 10);
  times.begin();
  for (int i = 0; i < 800; ++i) times.still_out(ReturnTimes::kNew, 1'000);
  times.end();
  EXPECT_NEAR(share_before(times, ReturnTimes::kNew, ReturnTimes::kNever), 100 / (100 + 0.6 * 800),
              0.02);
  take_over(&times);
  EXPECT_EQ(share_before(times, ReturnTimes::kNew, ReturnTimes::kNever), 1);
}

TEST(ReturnTimes, ClassesAreApart) {
  ReturnTimes times;
  const uint32_t often = ReturnTimes::class_after(10), seldom = ReturnTimes::class_after(10'000);
  ASSERT_NE(often, seldom);
  for (int i = 0; i < 100; ++i) {
    times.note_return(often, 10);
    times.note_return(seldom, 10'000);
  }
  take_over(&times);
  EXPECT_EQ(share_before(times, often, 20), 1);
  EXPECT_EQ(share_before(times, seldom, 5'000), 0);
}

TEST(ReturnTimes, WhatIsOldCountsLess) {
  ReturnTimes times;
  for (int i = 0; i < 20'000; ++i) times.note_return(ReturnTimes::kNew, 10);
  for (int i = 0; i < 60'000; ++i) times.note_return(ReturnTimes::kNew, 1'000);
  take_over(&times);
  EXPECT_LT(share_before(times, ReturnTimes::kNew, 100), 0.1);
}

}  // namespace
}  // namespace outcore::recording
