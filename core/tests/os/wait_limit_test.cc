// WaitLimit: time during which nobody could do anything does not count.
#include "core/os/wait_limit.h"

#include <gtest/gtest.h>

namespace outcore::os {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// A clock that the test sets.
class WaitLimitTest : public testing::Test, WaitHooks {
 protected:
  WaitLimitTest() : before_(wait_hooks) { wait_hooks = this; }
  ~WaitLimitTest() override { wait_hooks = before_; }
  void wait(std::atomic<uint32_t>*, uint32_t, uint64_t) override {}
  void wake_all(std::atomic<uint32_t>*) override {}
  void yield() override {}
  uint64_t now_ns() override { return now_ns_; }

  uint64_t now_ns_ = 1'000'000;

 private:
  WaitHooks* const before_;
};

TEST_F(WaitLimitTest, IsOverWhenSoMuchTimeHasPassed) {
  WaitLimit limit(80 * kSecond);
  for (int look = 0; look < 8; ++look) {
    EXPECT_FALSE(limit.is_over()) << look;
    EXPECT_EQ(limit.waited_ns(), 10 * kSecond * static_cast<unsigned>(look));
    EXPECT_EQ(limit.left_ns(), 80 * kSecond - limit.waited_ns());
    now_ns_ += 10 * kSecond;
  }
  EXPECT_FALSE(limit.is_over());
  now_ns_ += 1;
  EXPECT_TRUE(limit.is_over());
  EXPECT_EQ(limit.left_ns(), 0u);
}

TEST_F(WaitLimitTest, TimeInWhichTheProcessStoodStillHardlyCounts) {
  WaitLimit limit(80 * kSecond);
  for (int stops = 0; stops < 8; ++stops) {
    now_ns_ += 1000 * kSecond;
    EXPECT_FALSE(limit.is_over()) << stops;
  }
  EXPECT_EQ(limit.waited_ns(), 80 * kSecond);
  now_ns_ += 1000 * kSecond;
  EXPECT_TRUE(limit.is_over());
}

TEST_F(WaitLimitTest, WorkInVainThatTakesLongIsTriedTwice) {
  WaitLimit limit(80 * kSecond);
  now_ns_ += kSecond;
  EXPECT_FALSE(limit.is_over_after_work());
  EXPECT_EQ(limit.waited_ns(), kSecond) << "all of what took a little";
  WaitLimit slow(80 * kSecond);
  now_ns_ += 1000 * kSecond;
  EXPECT_FALSE(slow.is_over_after_work());
  now_ns_ += 1000 * kSecond;
  EXPECT_TRUE(slow.is_over_after_work());
}

TEST_F(WaitLimitTest, OfLittleTimeIsOverAfterOneLook) {
  WaitLimit limit(kSecond / 10);
  EXPECT_FALSE(limit.is_over());
  now_ns_ += kSecond / 2;
  EXPECT_TRUE(limit.is_over());
}

TEST_F(WaitLimitTest, OfNoTimeIsOverAtOnce) {
  WaitLimit limit(0);
  now_ns_ += 1;
  EXPECT_TRUE(limit.is_over());
}

TEST_F(WaitLimitTest, AClockThatGoesBackAddsNothing) {
  WaitLimit limit(80 * kSecond);
  now_ns_ -= 500;
  EXPECT_FALSE(limit.is_over());
  EXPECT_EQ(limit.waited_ns(), 0u);
}

}  // namespace
}  // namespace outcore::os
