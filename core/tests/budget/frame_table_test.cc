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
  for (int i = 0; i < 100; ++i) taken.insert(frames.allocate_frame());
  EXPECT_EQ(taken.size(), 100u);
  EXPECT_EQ(*taken.rbegin(), 99u);
  EXPECT_EQ(frames.allocate_frame(), kNone);
  EXPECT_EQ(frames.allocate_frame(), kNone) << "and so it stays";
  frames.free_frame(42);
  EXPECT_EQ(frames.allocate_frame(), 42u);
  EXPECT_EQ(frames.allocate_frame(), kNone);
}

TEST(FrameTable, UsesNumbersAgainBeforeFreshOnes) {
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(1'000'000).ok());
  for (int i = 0; i < 1000; ++i) frames.free_frame(frames.allocate_frame());
  EXPECT_EQ(frames.used_once(), 1u);
}

TEST(FrameTable, CostsMemoryAsItIsUsed) {
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(10'000'000).ok());
  EXPECT_LT(frames.touched_bytes(), 64u << 10);
  for (int i = 0; i < 1000; ++i) frames[frames.allocate_frame()].page = 1;
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
        const uint32_t a = frames.allocate_frame(), b = frames.allocate_frame();
        for (const uint32_t frame : {a, b}) {
          if (frame == kNone) continue;
          shared += holders[frame].fetch_add(1) != 0;
        }
        for (const uint32_t frame : {a, b}) {
          if (frame == kNone) continue;
          holders[frame].fetch_sub(1);
          frames.free_frame(frame);
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shared, 0u);
  std::set<uint32_t> all;
  for (uint32_t frame = frames.allocate_frame(); frame != kNone; frame = frames.allocate_frame())
    all.insert(frame);
  EXPECT_EQ(all.size(), kFrames) << "none is lost";
}

TEST(FrameTableDeathTest, GivingAFrameTwiceIsABug) {
  FrameTable frames;
  ASSERT_TRUE(frames.allocate(4).ok());
  const uint32_t frame = frames.allocate_frame();
  frames.free_frame(frame);
  EXPECT_DEATH(frames.free_frame(frame), "head");
  EXPECT_DEATH(frames.free_frame(4), "frame < count_");
}

}  // namespace
}  // namespace outcore::budget
