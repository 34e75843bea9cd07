#include "core/budget/frame_table.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace outcore::budget {
namespace {

TEST(FrameTable, GivesEveryNumberOnce) {
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(100).ok());
  std::set<uint32_t> taken;
  for (int i = 0; i < 100; ++i) taken.insert(frames.take());
  EXPECT_EQ(taken.size(), 100u);
  EXPECT_EQ(*taken.rbegin(), 99u);
  EXPECT_EQ(frames.take(), kNone);
  EXPECT_EQ(frames.take(), kNone) << "and so it stays";
  frames.give(42);
  EXPECT_EQ(frames.take(), 42u);
  EXPECT_EQ(frames.take(), kNone);
}

TEST(FrameTable, UsesNumbersAgainBeforeFreshOnes) {
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(1'000'000).ok());
  for (int i = 0; i < 1000; ++i) frames.give(frames.take());
  EXPECT_EQ(frames.used_once(), 1u);
}

TEST(FrameTable, CostsMemoryAsItIsUsed) {
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(10'000'000).ok());
  EXPECT_LT(frames.touched_bytes(), 64u << 10);
  for (int i = 0; i < 1000; ++i) frames[frames.take()].page = 1;
  EXPECT_LT(frames.touched_bytes(), 128u << 10);
  EXPECT_GE(frames.touched_bytes(), 1000 * sizeof(FrameRecord));
}

TEST(FrameTable, TwoThreadsNeverHoldOneFrame) {
  constexpr uint32_t kFrames = 8;
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(kFrames).ok());
  std::atomic<int> holders[kFrames] = {};
  std::atomic<uint64_t> shared = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        const uint32_t a = frames.take(), b = frames.take();
        for (const uint32_t frame : {a, b}) {
          if (frame == kNone) continue;
          shared += holders[frame].fetch_add(1) != 0;
        }
        for (const uint32_t frame : {a, b}) {
          if (frame == kNone) continue;
          holders[frame].fetch_sub(1);
          frames.give(frame);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 0u);
  std::set<uint32_t> all;
  for (uint32_t frame = frames.take(); frame != kNone; frame = frames.take()) all.insert(frame);
  EXPECT_EQ(all.size(), kFrames) << "none is lost";
}

TEST(FrameTableDeathTest, GivingAFrameTwiceIsABug) {
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(4).ok());
  const uint32_t frame = frames.take();
  frames.give(frame);
  EXPECT_DEATH(frames.give(frame), "head");
  EXPECT_DEATH(frames.give(4), "frame < count_");
}

}  // namespace
}  // namespace outcore::budget
