// RangeSet: agrees with a set of single numbers, whatever is added and taken out.
#include "core/base/range_set.h"

#include <random>
#include <set>

#include "gtest/gtest.h"

namespace outcore::base {
namespace {

TEST(RangeSet, AgreesWithASetOfNumbers) {
  std::mt19937_64 random(7);
  RangeSet ranges;
  std::set<uint64_t> model;
  for (int step = 0; step < 20000; ++step) {
    const uint64_t first = random() % 500, count = 1 + random() % 20;
    if (random() % 2 == 0) {
      ranges.remove(first, count);
      for (uint64_t t = first; t < first + count; ++t) model.erase(t);
    } else if (!ranges.first_in(first, count)) {
      ranges.add(first, count);
      for (uint64_t t = first; t < first + count; ++t) model.insert(t);
    }
    ASSERT_TRUE(ranges.is_valid());
    ASSERT_EQ(ranges.total(), model.size());
    const auto in = ranges.first_in(first, count);
    const auto expected = model.lower_bound(first);
    ASSERT_EQ(in.has_value(), expected != model.end() && *expected < first + count);
    if (in) {
      ASSERT_EQ(in->first, *expected);
    }
    if (const auto found = ranges.find(count)) {
      for (uint64_t t = 0; t < found->count; ++t) ASSERT_TRUE(model.contains(found->first + t));
      ASSERT_GE(found->count, count);
    }
  }
}

TEST(RangeSet, TakesTheShortestRangeThatHasRoomForAnAlignedOne) {
  RangeSet ranges;
  ranges.add(0, 1000);
  ranges.add(2001, 70);   // the shortest that is long enough: 2048 … 2071
  ranges.add(3000, 100);  // 3008 … 3040
  EXPECT_EQ(ranges.take(23, 64), 2048u);
  EXPECT_EQ(ranges.take(32, 32), 2016u);
  EXPECT_EQ(ranges.take(32, 32), 3008u);
  EXPECT_EQ(ranges.take(1000, 1), 0u);
  EXPECT_FALSE(ranges.take(1000, 1));
  EXPECT_EQ(ranges.total(), 170u - 23 - 32 - 32);
  EXPECT_TRUE(ranges.is_valid());
}

TEST(RangeSet, TakesWhatIsAskedForWholeOrNotAtAll) {
  RangeSet ranges;
  ranges.add(10, 10);
  EXPECT_FALSE(ranges.take_at(9, 2));
  EXPECT_FALSE(ranges.take_at(19, 2));
  EXPECT_FALSE(ranges.take_at(20, 1));
  EXPECT_EQ(ranges.total(), 10u);
  EXPECT_TRUE(ranges.take_at(12, 3));
  EXPECT_FALSE(ranges.take_at(14, 1));
  EXPECT_EQ(ranges.total(), 7u);
  EXPECT_TRUE(ranges.is_valid());
}

TEST(RangeSet, ListsWhatIsWithinARangeCutToIt) {
  RangeSet ranges;
  ranges.add(0, 10);
  ranges.add(20, 10);
  const auto all = ranges.all_in(5, 20);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first, 5u);
  EXPECT_EQ(all[0].end(), 10u);
  EXPECT_EQ(all[1].first, 20u);
  EXPECT_EQ(all[1].end(), 25u);
  EXPECT_TRUE(ranges.all_in(10, 10).empty());
  EXPECT_TRUE(ranges.all_in(5, 0).empty());
}

}  // namespace
}  // namespace outcore::base
