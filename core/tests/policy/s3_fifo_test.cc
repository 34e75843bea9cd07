#include "core/policy/s3_fifo.h"

#include <gtest/gtest.h>

#include "core/tests/policy/simulated_pager.h"

namespace outcore::policy {
namespace {

class S3FifoTest : public testing::Test {
 protected:
  void make(const std::string& name, size_t frames) {
    policy = make_policy(name, frames, frames).value();
  }
  // The same, after memory has been full for the first time.
  void make_full_once(const std::string& name, size_t frames) {
    make(name, frames);
    fill(0, 1'000'000);
    free_victim(0);
  }
  void fill(uint32_t frame, uint64_t page) { policy->filled(FrameId{frame}, key_of_page(page)); }
  uint32_t victim() {
    FrameId out[1];
    EXPECT_EQ(policy->choose_victims(out), 1u);
    return static_cast<uint32_t>(out[0]);
  }
  void free_victim(uint32_t frame) {
    ASSERT_EQ(victim(), frame);
    policy->freed(FrameId{frame});
  }
  std::unique_ptr<Policy> policy;
};

TEST_F(S3FifoTest, UntilMemoryIsFullPagesJoinTheMainQueue) {
  make("s3-fifo", 10);
  for (uint32_t f = 0; f < 10; ++f) fill(f, f);  // main: 0 … 8; small: 9
  free_victim(0);
  fill(0, 100);  // small
  EXPECT_EQ(victim(), 9u);
  EXPECT_EQ(victim(), 1u);
}

TEST_F(S3FifoTest, AGuessLeavesBeforeWhatWasAskedFor) {
  make("s3-fifo", 10);
  for (uint32_t f = 0; f < 3; ++f) fill(f, f);
  for (uint32_t f = 3; f < 9; ++f) policy->guessed(FrameId{f}, key_of_page(f));
  fill(9, 9);
  for (uint32_t f = 3; f < 8; ++f) EXPECT_EQ(victim(), f);
}

TEST_F(S3FifoTest, AGuessLeavesNoGhost) {
  make_full_once("s3-fifo", 10);
  policy->guessed(FrameId{0}, key_of_page(0));
  free_victim(0);
  for (uint32_t f = 0; f < 3; ++f) fill(f, f);
  EXPECT_EQ(victim(), 0u);
}

TEST_F(S3FifoTest, AGuessBesideAPageThatComesBackStaysAsLong) {
  make_full_once("s3-fifo", 10);
  fill(0, 0);
  free_victim(0);
  policy->guessed(FrameId{0}, key_of_page(0));  // its ghost was there: main queue
  fill(1, 1);
  fill(2, 2);
  EXPECT_EQ(victim(), 1u);
}

TEST_F(S3FifoTest, APageThatComesBackWhileItsGhostLivesStaysLonger) {
  make_full_once("s3-fifo", 10);
  for (uint32_t f = 0; f < 4; ++f) fill(f, f);
  free_victim(0);
  fill(0, 0);  // its ghost was there: main queue
  EXPECT_EQ(victim(), 1u);
  EXPECT_EQ(victim(), 2u);
  EXPECT_EQ(victim(), 0u) << "the small queue is down to its share: main's turn";
  EXPECT_EQ(victim(), 3u);
}

TEST_F(S3FifoTest, AGhostCountsOnce) {
  make_full_once("s3-fifo", 10);
  fill(0, 0);
  free_victim(0);
  fill(0, 0);  // main, and its ghost is used up
  free_victim(0);
  fill(0, 0);
  for (uint32_t f = 1; f < 3; ++f) fill(f, f);
  EXPECT_EQ(victim(), 0u) << "what the main queue gives up leaves no ghost";
}

TEST_F(S3FifoTest, ARescuedPageJoinsTheMainQueue) {
  make_full_once("s3-fifo", 10);
  for (uint32_t f = 0; f < 4; ++f) fill(f, f);
  ASSERT_EQ(victim(), 0u);
  policy->rescued(FrameId{0});
  EXPECT_EQ(victim(), 1u);
  EXPECT_EQ(victim(), 2u);
  EXPECT_EQ(victim(), 0u);
}

TEST_F(S3FifoTest, TheMainQueueGivesUpPagesWhileTheSmallOneIsWithinItsShare) {
  make_full_once("s3-fifo:small=50%,ghosts=100%", 10);
  for (uint32_t f = 0; f < 10; ++f) fill(f, f);
  for (uint32_t f = 0; f < 3; ++f) free_victim(f);
  for (uint32_t f = 0; f < 3; ++f) fill(f, f);  // main: 0, 1, 2; small: 3 … 9
  for (const uint32_t f : {3, 4, 0, 1, 2, 5, 6}) EXPECT_EQ(victim(), f);
}

TEST_F(S3FifoTest, PagesThatComeBackTooSoonMakeTheSmallQueueLonger) {
  make_full_once("s3-fifo:small=5%,ghosts=100%", 100);
  for (uint32_t f = 0; f < 20; ++f) fill(f, f);
  for (uint32_t f = 0; f < 10; ++f) free_victim(f);
  for (uint32_t f = 10; f-- > 0;) fill(f, f);  // at once: main; small: 10 … 19, its target 15
  for (uint32_t f = 10; f-- > 0;) EXPECT_EQ(victim(), f) << "small is within its longer target";
  EXPECT_EQ(victim(), 10u);
}

TEST_F(S3FifoTest, ARemovedPageLeavesNoGhost) {
  make_full_once("s3-fifo", 10);
  fill(0, 0);
  policy->removed(FrameId{0});
  for (uint32_t f = 0; f < 4; ++f) fill(f, f);
  EXPECT_EQ(victim(), 0u);
}

TEST_F(S3FifoTest, TheMainQueueGivesUpAPageNowAndThenAndTakesItBackIfItReturns) {
  make_full_once("s3-fifo", 1000);
  for (uint32_t f = 0; f < 1000; ++f) fill(f, f);  // small
  free_victim(0);
  fill(0, 0);  // main
  for (uint32_t i = 1; i < 127; ++i) free_victim(i);
  free_victim(0);  // a look, after 128 others
  fill(0, 0);
  for (uint32_t i = 127; i < 254; ++i) free_victim(i);
  free_victim(0);  // the next look: it was in the main queue
  fill(0, 5000);   // a page that has never been here
  for (uint32_t i = 254; i < 600; ++i) free_victim(i);
}

TEST_F(S3FifoTest, GuessesThatLeaveCallForNoLook) {
  make_full_once("s3-fifo", 1000);
  fill(0, 0);
  free_victim(0);
  fill(0, 0);  // main
  for (uint32_t f = 1; f < 1000; ++f) policy->guessed(FrameId{f}, key_of_page(f));
  for (uint32_t f = 1; f < 900; ++f) free_victim(f);
}

TEST_F(S3FifoTest, ASmallResizeForgetsNoGhosts) {
  make_full_once("s3-fifo", 1000);
  for (uint32_t f = 0; f < 900; ++f) fill(f, f);
  for (uint32_t f = 0; f < 3; ++f) free_victim(f);
  policy->set_capacity(950);
  fill(0, 0);  // main
  policy->set_capacity(500);
  fill(1, 1);  // small: nothing is remembered
  for (uint32_t f = 3; f < 30; ++f) free_victim(f);
  fill(2, 2);
  std::vector<FrameId> rest(900);
  rest.resize(policy->choose_victims(rest));
  ASSERT_EQ(rest.size(), 873u);
  EXPECT_EQ(rest[857], FrameId{0}) << "when the small queue is down to its share of 15";
  EXPECT_EQ(rest[871], FrameId{1});
}

TEST_F(S3FifoTest, WithoutGhostsAndRescuesItIsFifo) {
  make_full_once("s3-fifo:ghosts=0%", 10);
  for (uint32_t i = 0; i < 100; ++i) {
    fill(i % 10, i % 7);
    if (i >= 9) free_victim((i + 1) % 10);
  }
}

TEST_F(S3FifoTest, CoolingRestsItsShare) {
  make("s3-fifo:cool=5%", 1000);
  EXPECT_EQ(policy->leaving_target(), 50u);
}

}  // namespace
}  // namespace outcore::policy
