// A miniature misses what its policy misses, and says which pages it drops.
#include "core/policy/miniature.h"

#include <gtest/gtest.h>

#include <set>

#include "core/tests/policy/simulated_pager.h"

namespace outcore::policy {
namespace {

constexpr uint32_t kSmallFrames = 256;
constexpr uint64_t kSmallPages = 1024;

TEST(Miniature, MissesAsOftenAsItsPolicyInAPagerThatEvictsOneByOne) {
  for (const char* name : {"fifo", "s3-fifo", "di-mmap", "s3-fifo:cool=5%"}) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      SimulatedPager pager(name, kSmallFrames, kSmallPages, 1);
      Miniature miniature;
      ProbeQueue dropped;
      ASSERT_TRUE(dropped.allocate().ok());
      ASSERT_TRUE(miniature.allocate(name, kSmallFrames).ok());
      const Zipf zipf(kSmallPages, .9);
      Dice dice(seed);
      uint64_t misses = 0, rescues = 0;
      for (uint64_t i = 0; i < 50'000; ++i) {
        const uint64_t page = i % 3 == 0 ? i / 3 % kSmallPages : zipf.next(dice);
        pager.touch(page);
        const auto outcome = miniature.touch(key_of_page(page), FrameId{7}, false, dropped);
        misses += outcome == Miniature::Outcome::kMiss;
        rescues += outcome == Miniature::Outcome::kRescue;
      }
      EXPECT_TRUE(miniature.is_valid());
      EXPECT_EQ(misses, pager.misses);
      EXPECT_EQ(rescues, pager.rescues);
    }
  }
}

TEST(Miniature, AsksForEveryPageThatItDropsOrLetsLeave) {
  for (const char* name : {"fifo", "s3-fifo", "di-mmap"}) {
    SCOPED_TRACE(name);
    Miniature miniature;
    ProbeQueue dropped;
    ASSERT_TRUE(dropped.allocate().ok());
    ASSERT_TRUE(miniature.allocate(name, kSmallFrames).ok());
    Dice dice(3);
    std::set<PageKey> shown;  // resident, as far as the requests tell
    for (int i = 0; i < 20'000; ++i) {
      const PageKey key = key_of_page(dice.below(kSmallPages));
      const bool was_there = miniature.has(key);
      EXPECT_EQ(was_there, shown.contains(key));
      const auto outcome = miniature.touch(key, FrameId{9}, false, dropped);
      EXPECT_EQ(outcome == Miniature::Outcome::kHit, was_there);
      shown.insert(key);
      while (!dropped.is_empty()) {
        const ProbeRequest request = dropped.pop();
        EXPECT_EQ(request.frame, FrameId{9});
        EXPECT_EQ(shown.erase(request.key), 1u);
      }
    }
  }
}

TEST(Miniature, ShrinksAtTheNextTouch) {
  Miniature miniature;
  ProbeQueue dropped;
  ASSERT_TRUE(dropped.allocate().ok());
  ASSERT_TRUE(miniature.allocate("fifo", kSmallFrames).ok());
  for (uint64_t page = 0; page < kSmallFrames; ++page)
    miniature.touch(key_of_page(page), FrameId{0}, false, dropped);
  EXPECT_TRUE(dropped.is_empty());
  miniature.set_capacity(10);
  miniature.touch(key_of_page(kSmallFrames), FrameId{0}, false, dropped);
  uint64_t count = 0;
  for (uint64_t page = 0; page <= kSmallFrames; ++page) count += miniature.has(key_of_page(page));
  EXPECT_EQ(count, 10u);
  EXPECT_TRUE(miniature.is_valid());
}

TEST(ProbeQueue, ForgetsTheOldestWhenItIsFullAndSaysSo) {
  ProbeQueue queue;
  ASSERT_TRUE(queue.allocate().ok());
  for (uint64_t i = 0; i < ProbeQueue::kMax; ++i) queue.push({i, FrameId{1}});
  EXPECT_FALSE(queue.test_and_clear_overflow());
  queue.push({ProbeQueue::kMax, FrameId{1}});
  EXPECT_TRUE(queue.test_and_clear_overflow());
  EXPECT_FALSE(queue.test_and_clear_overflow());
  EXPECT_EQ(queue.pop().key, 1u);
  queue.clear();
  EXPECT_TRUE(queue.is_empty());
}

}  // namespace
}  // namespace outcore::policy
