// DiMmap: one test for each rule of the paper's section 2.
#include "core/policy/di_mmap.h"

#include <gtest/gtest.h>

#include <vector>

namespace outcore::policy {
namespace {

// Keys made by key(n) have one bucket each, if there are at least 8 buckets.
PageKey key(uint64_t n) { return n << 61; }

class DiMmapTest : public testing::Test {
 protected:
  void make(const std::string& name, size_t frames) {
    policy = make_policy(name, frames, frames).value();
  }
  void fill(uint32_t frame, PageKey k) { policy->filled(FrameId{frame}, k); }
  uint32_t victim() {
    FrameId out[1];
    EXPECT_EQ(policy->choose_victims(out), 1u);
    EXPECT_TRUE(policy->is_valid());
    return static_cast<uint32_t>(out[0]);
  }
  // Displaces and rescues the frame, which must be the next victim, so that its fault count grows
  // by one.
  void fault_again(uint32_t frame) {
    ASSERT_EQ(victim(), frame);
    policy->rescued(FrameId{frame});
  }
  std::unique_ptr<Policy> policy;
};

TEST_F(DiMmapTest, PagesOfAverageFaultsLeaveInTheOrderInWhichTheyCame) {
  make("di-mmap", 8);
  for (uint32_t f = 0; f < 4; ++f) fill(f, key(f));
  for (uint32_t f = 0; f < 4; ++f) EXPECT_EQ(victim(), f);
}

TEST_F(DiMmapTest, APageTouchedInTheEvictionQueueJoinsThePrimaryFifoAsItsNewest) {
  make("di-mmap:hot=0%", 8);
  for (uint32_t f = 0; f < 3; ++f) fill(f, key(f));
  fault_again(0);
  EXPECT_EQ(victim(), 1u);
  EXPECT_EQ(victim(), 2u);
  EXPECT_EQ(victim(), 0u);
}

TEST_F(DiMmapTest, APageFaultedMoreThanTheAverageIsDisplacedIntoTheHotFifo) {
  make("di-mmap:hot=50%", 8);
  for (uint32_t f = 0; f < 3; ++f) fill(f, key(f));
  fault_again(0);
  fill(3, key(3));
  EXPECT_EQ(victim(), 1u);
  EXPECT_EQ(victim(), 2u);
  EXPECT_EQ(victim(), 3u) << "0 was displaced first, but it is hot";
  EXPECT_EQ(victim(), 0u);
}

TEST_F(DiMmapTest, APageThatJoinsAFullHotFifoDisplacesItsOldest) {
  make("di-mmap:hot=25%", 4);
  for (uint32_t f = 0; f < 4; ++f) fill(f, key(f));
  fault_again(0);
  fault_again(1);
  EXPECT_EQ(victim(), 2u);
  EXPECT_EQ(victim(), 3u);
  EXPECT_EQ(victim(), 0u) << "0 joined the hot FIFO, and 1 took its only place";
  EXPECT_EQ(victim(), 1u);
}

TEST_F(DiMmapTest, TheHotFifoKeepsItsShareInBatches) {
  make("di-mmap:hot=50%", 100);
  for (uint32_t f = 0; f < 100; ++f) fill(f, key(f % 8));
  std::vector<FrameId> out(80);
  ASSERT_EQ(policy->choose_victims(out), 80u);
  for (const FrameId f : out) policy->rescued(f);
  // 80 pages have two faults, 20 have one: the average is 1.8.
  out.resize(20);
  ASSERT_EQ(policy->choose_victims(out), 20u);
  for (const FrameId f : out) EXPECT_GE(static_cast<uint32_t>(f), 80u) << "the cold ones go first";
  for (const FrameId f : out) policy->freed(f);
  // All 80 have two faults now, which is not more than the average: none of them is hot.
  ASSERT_EQ(policy->choose_victims(out), 20u);
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(static_cast<uint32_t>(out[i]), i);
}

TEST_F(DiMmapTest, ANewPageStartsWithTheCountOfItsBucket) {
  make("di-mmap:hot=50%,buckets=8", 8);
  fill(0, key(1));
  fault_again(0);
  ASSERT_EQ(victim(), 0u);
  policy->freed(FrameId{0});  // its bucket remembers two faults
  fill(0, key(1));
  for (uint32_t f = 1; f < 4; ++f) fill(f, key(f + 1));
  EXPECT_EQ(victim(), 1u) << "0 has two faults, more than the average, from the start";
}

TEST_F(DiMmapTest, PagesOfOneBucketShareItsHistory) {
  make("di-mmap:hot=50%,buckets=8", 8);
  fill(0, key(1));
  fault_again(0);
  ASSERT_EQ(victim(), 0u);
  policy->freed(FrameId{0});
  fill(0, key(1) + 12345);
  for (uint32_t f = 1; f < 4; ++f) fill(f, key(f + 1));
  EXPECT_EQ(victim(), 1u);
}

TEST_F(DiMmapTest, ABucketDecaysByPagesThatAreFreedWithItsOwnCount) {
  make("di-mmap:hot=50%,buckets=8", 8);
  fill(0, key(1));
  fault_again(0);
  ASSERT_EQ(victim(), 0u);
  policy->freed(FrameId{0});  // two
  fill(0, key(1));
  ASSERT_EQ(victim(), 0u);
  policy->freed(FrameId{0});  // started with two, freed with two: one
  fill(0, key(1));
  for (uint32_t f = 1; f < 4; ++f) fill(f, key(f + 1));
  EXPECT_EQ(victim(), 0u) << "it is like any other page again";
}

TEST_F(DiMmapTest, AFreedPageWithFewerFaultsLeavesItsBucketAlone) {
  make("di-mmap:hot=50%,buckets=8", 8);
  fill(0, key(1));
  fill(1, key(1) + 1);  // in the same bucket, and also with one fault
  fault_again(0);
  ASSERT_EQ(victim(), 1u);
  ASSERT_EQ(victim(), 0u);
  policy->freed(FrameId{0});  // two
  policy->freed(FrameId{1});  // one is fewer
  fill(0, key(1));
  for (uint32_t f = 1; f < 4; ++f) fill(f, key(f + 1));
  EXPECT_EQ(victim(), 1u);
}

TEST_F(DiMmapTest, ARemovedPageLeavesNoHistory) {
  make("di-mmap:hot=50%,buckets=8", 8);
  fill(0, key(1));
  fault_again(0);
  policy->removed(FrameId{0});
  fill(0, key(1));
  for (uint32_t f = 1; f < 4; ++f) fill(f, key(f + 1));
  EXPECT_EQ(victim(), 0u);
}

TEST_F(DiMmapTest, ASmallerCapacityShrinksTheHotFifo) {
  make("di-mmap:hot=50%", 8);
  for (uint32_t f = 0; f < 6; ++f) fill(f, key(f));
  fault_again(0);
  fault_again(1);
  EXPECT_EQ(victim(), 2u);
  EXPECT_EQ(victim(), 3u);
  fill(6, key(6));
  EXPECT_EQ(victim(), 4u);
  EXPECT_EQ(victim(), 5u);
  EXPECT_EQ(victim(), 6u) << "0 and 1 are hot";
  fill(7, key(7));
  policy->set_capacity(2);
  EXPECT_EQ(victim(), 0u) << "one hot page is what 2 frames allow";
  EXPECT_EQ(victim(), 7u);
}

TEST_F(DiMmapTest, TheEvictionQueueRestsAsLongAsItsShare) {
  make("di-mmap:queue=20%", 1000);
  EXPECT_EQ(policy->leaving_target(), 200u);
  policy->set_capacity(500);
  EXPECT_EQ(policy->leaving_target(), 100u);
}

}  // namespace
}  // namespace outcore::policy
