#include "core/region/page_word.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace outcore::region {
namespace {

using S = PageState;

TEST(PageValue, ZeroIsAbsent) {
  EXPECT_EQ(PageValue().state(), S::kAbsent);
  EXPECT_EQ(PageValue().pins(), 0u);
  EXPECT_FALSE(PageValue().has(PageValue::kDirty));
}

TEST(PageValue, ItsPartsDoNotTouchEachOther) {
  const PageValue full = PageValue()
                             .with(S::kFailed)
                             .with_frame(0xFFFFFFFF)
                             .with_pins(PageValue::kPinsMax)
                             .plus(PageValue::kDirty | PageValue::kWriting);
  EXPECT_EQ(full.state(), S::kFailed);
  EXPECT_EQ(full.frame(), 0xFFFFFFFFu);
  EXPECT_EQ(full.pins(), PageValue::kPinsMax);
  const PageValue less = full.with_pins(0).minus(PageValue::kDirty).with(S::kResident);
  EXPECT_EQ(less.frame(), 0xFFFFFFFFu);
  EXPECT_EQ(less.pins(), 0u);
  EXPECT_EQ(less.state(), S::kResident);
  EXPECT_TRUE(less.has(PageValue::kWriting));
  EXPECT_FALSE(less.has(PageValue::kDirty));
}

TEST(PageWord, ChangesOnlyWhatWasSeen) {
  PageWord word;
  PageValue seen = word.load();
  EXPECT_TRUE(word.change(seen, seen.with(S::kFilling)));
  PageValue stale;
  EXPECT_FALSE(word.change(stale, stale.with(S::kFilling)));
  EXPECT_EQ(stale.state(), S::kFilling) << "it is told what is there";
}

TEST(PageWord, OneOfManyThreadsWinsTheFill) {
  for (int round = 0; round < 200; ++round) {
    PageWord word;
    std::atomic<int> winners = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        PageValue seen = word.load();
        if (seen.state() == S::kAbsent && word.change(seen, seen.with(S::kFilling))) ++winners;
      });
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1);
  }
}

TEST(PageWord, ASleeperWakesWhenTheWordChanges) {
  PageWord word;
  word.update([](PageValue v) { return v.with(S::kFilling); });
  std::thread sleeper([&] {
    for (PageValue seen = word.load(); seen.state() == S::kFilling; seen = word.load())
      word.wait_while(seen, uint64_t{3600} * 1'000'000'000);
  });
  // Asleep already or not: it must notice the change.
  word.update([](PageValue v) { return v.with(S::kResident).with_frame(7); });
  sleeper.join();
  EXPECT_EQ(word.load().frame(), 7u);
  EXPECT_FALSE(word.load().has(PageValue::kWaiters)) << "a change takes the mark away";
}

TEST(PageWord, PinsOfManyThreadsAddUp) {
  PageWord word;
  word.update([](PageValue v) { return v.with(S::kFilling); });
  word.update([](PageValue v) { return v.with(S::kResident); });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) {
        word.update([](PageValue v) { return v.with_pins(v.pins() + 1); });
        if (i % 2 == 0) word.update([](PageValue v) { return v.with_pins(v.pins() - 1); });
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(word.load().pins(), 4u * 2500);
}

}  // namespace
}  // namespace outcore::region
