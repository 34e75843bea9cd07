#include "core/store/written_map.h"

#include <gtest/gtest.h>

namespace outcore::store {
namespace {

constexpr uint64_t kUnit = 4096;

TEST(WrittenMap, ANewMapIsUntouched) {
  WrittenMap map;
  ASSERT_EQ(map.cover(1000 * kUnit, kUnit), 0);
  EXPECT_TRUE(map.is_untouched(0, 1000 * kUnit));
  EXPECT_EQ(map.next_written(0, 1000 * kUnit), 1000 * kUnit);
}

TEST(WrittenMap, AMarkTouchesEveryUnitOfItsRangeAndNoOther) {
  for (const uint64_t first : {0, 1, 63, 64, 65, 127, 500})
    for (const uint64_t count : {1, 2, 63, 64, 65, 200}) {
      WrittenMap map;
      ASSERT_EQ(map.cover(1000 * kUnit, kUnit), 0);
      map.mark(first * kUnit + 5, count * kUnit - 9);
      for (uint64_t unit = 0; unit < 1000; ++unit)
        ASSERT_EQ(map.is_written(unit * kUnit), unit >= first && unit < first + count) << unit;
      EXPECT_EQ(map.next_written(0, 1000 * kUnit), first * kUnit);
      EXPECT_EQ(map.run_end(first * kUnit + 1, 1000 * kUnit), (first + count) * kUnit);
      EXPECT_EQ(map.next_written((first + count) * kUnit, 1000 * kUnit), 1000 * kUnit);
    }
}

TEST(WrittenMap, OnlyWholeUnitsAreCleared) {
  WrittenMap map;
  ASSERT_EQ(map.cover(100 * kUnit, kUnit), 0);
  map.mark(0, 100 * kUnit);
  map.clear_inside(10 * kUnit + 1, 5 * kUnit);
  EXPECT_TRUE(map.is_written(10 * kUnit));
  EXPECT_TRUE(map.is_untouched(11 * kUnit, 4 * kUnit));
  EXPECT_TRUE(map.is_written(15 * kUnit));
}

TEST(WrittenMap, PastItsCapacityEverythingCountsAsWritten) {
  WrittenMap map;
  ASSERT_EQ(map.cover(10 * kUnit, kUnit), 0);
  map.mark(20 * kUnit, kUnit);
  EXPECT_FALSE(map.is_untouched(9 * kUnit, 2 * kUnit));
  EXPECT_TRUE(map.is_written(30 * kUnit));
  EXPECT_TRUE(map.is_untouched(9 * kUnit, kUnit));
}

TEST(WrittenMap, AMarkIsTakenOnce) {
  WrittenMap map;
  ASSERT_EQ(map.cover(10 * kUnit, kUnit), 0);
  map.mark(3 * kUnit, 1);
  EXPECT_TRUE(map.take(3 * kUnit + 7));
  EXPECT_FALSE(map.take(3 * kUnit));
}

}  // namespace
}  // namespace outcore::store
