// TouchLog: which parts of a store are brought in, in the order of the first time.
#include "core/prefetch/touch_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace outcore::prefetch {
namespace {

constexpr uint64_t kPage = base::kSystemPage, kUnit = kTouchUnitBytes;

std::unique_ptr<TouchLog> log_of(uint64_t size_bytes) { return TouchLog::make(size_bytes).value(); }

TEST(TouchLog, KeepsTheOrderOfTheFirstTouchesAndTheirParts) {
  const auto log = log_of(100 * kUnit);
  log->note(7 * kUnit + 2 * kPage, kPage);
  log->note(3 * kUnit, kPage);
  log->note(7 * kUnit + 5 * kPage, kPage);
  log->note(3 * kUnit, kPage);
  const std::vector<Touch> expected = {{7, 0b100100}, {3, 1}};
  EXPECT_EQ(log->touches(), expected);
  EXPECT_EQ(log->count(), 2u);
}

TEST(TouchLog, ANoteMaySpanUnitsAndParts) {
  const auto log = log_of(100 * kUnit);
  log->note(kUnit - kPage, kPage + kUnit + 3 * kPage);
  log->note(50 * kUnit, 16 * kUnit);
  std::vector<Touch> expected = {{0, 0x8000}, {1, kAllParts}, {2, 0b111}};
  for (uint32_t unit = 50; unit < 66; ++unit) expected.push_back({unit, kAllParts});
  EXPECT_EQ(log->touches(), expected);
}

TEST(TouchLog, PastItsEndNothingIsRecorded) {
  const auto log = log_of(2 * kUnit + 1);
  log->note(2 * kUnit, 4 * kUnit);
  log->note(3 * kUnit, kPage);
  log->note(uint64_t{1} << 60, kPage);
  const std::vector<Touch> expected = {{2, kAllParts}};
  EXPECT_EQ(log->touches(), expected);
}

TEST(TouchLog, KnowsWhetherItHasRoomForAStore) {
  EXPECT_TRUE(log_of(100)->has_room_for(kTouchUnitBytes));
  EXPECT_FALSE(log_of(100)->has_room_for(kTouchUnitBytes + 1));
  EXPECT_TRUE(log_of(kTouchUnitEnd * kTouchUnitBytes)->has_room_for(UINT64_MAX));
}

TEST(TouchLog, OfMoreUnitsThanItsMostTheFirstAreRecorded) {
  const auto log = log_of((kTouchedUnitsMax + 100) * kUnit);
  for (uint64_t unit = kTouchedUnitsMax + 100; unit-- > 0;) log->note(unit * kUnit, kPage);
  const std::vector<Touch> touches = log->touches();
  ASSERT_EQ(touches.size(), kTouchedUnitsMax);
  EXPECT_EQ(touches.front().unit, kTouchedUnitsMax + 99);
  EXPECT_EQ(touches.back().unit, 100u);
  EXPECT_EQ(log->count(), kTouchedUnitsMax);
}

TEST(TouchLog, ThreadsThatNoteTheSameUnitsRecordEachOnce) {
  constexpr uint32_t kUnits = 20'000;
  const auto log = log_of(kUnits * kUnit);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kUnits; ++i) {
        const uint64_t unit = t % 2 == 0 ? i : kUnits - 1 - i;
        log->note(unit * kUnit + t * kPage, kPage);
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<Touch> touches = log->touches();
  ASSERT_EQ(touches.size(), kUnits);
  std::sort(touches.begin(), touches.end(),
            [](const Touch& a, const Touch& b) { return a.unit < b.unit; });
  for (uint32_t unit = 0; unit < kUnits; ++unit) {
    ASSERT_EQ(touches[unit].unit, unit);
    ASSERT_EQ(touches[unit].parts, 0b1111);
  }
}

}  // namespace
}  // namespace outcore::prefetch
