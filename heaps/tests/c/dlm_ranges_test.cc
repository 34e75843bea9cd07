// DlmRanges: nothing is given twice, and neighbours that are free become one.
#include "heaps/c/dlm_ranges.h"

#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace outcore::c {
namespace {

TEST(DlmRanges, GiveNothingBeforeTheyAreExtended) {
  DlmRanges ranges;
  EXPECT_FALSE(ranges.allocate(1, 1).has_value());
  ranges.extend(4096);
  EXPECT_EQ(ranges.allocate(4096, 64), 0u);
  EXPECT_FALSE(ranges.allocate(1, 1).has_value());
  EXPECT_FALSE(ranges.free(64).has_value()) << "nothing begins there";
  EXPECT_EQ(ranges.free(0), 4096u);
  EXPECT_FALSE(ranges.free(0).has_value()) << "it is free already";
}

TEST(DlmRanges, WhatIsNeededIsEnough) {
  for (const uint64_t size_bytes : {1u, 64u, 4000u, 70000u})
    for (const uint64_t alignment : {1u, 64u, 4096u}) {
      DlmRanges ranges;
      ranges.extend(64);  // an end that fits no alignment
      ASSERT_TRUE(ranges.allocate(1, 1).has_value());
      ranges.extend((DlmRanges::needed(size_bytes, alignment) + 63) / 64 * 64);
      const auto taken = ranges.allocate(size_bytes, alignment);
      ASSERT_TRUE(taken.has_value()) << size_bytes << " " << alignment;
      EXPECT_EQ(*taken % alignment, 0u);
      EXPECT_TRUE(ranges.is_valid());
    }
}

TEST(DlmRanges, NeverOverlapWhateverIsTakenAndPut) {
  std::mt19937_64 random(17);
  DlmRanges ranges;
  std::vector<std::pair<uint64_t, uint64_t>> taken;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 3 != 0 || taken.empty()) {
      const uint64_t size_bytes = 1 + random() % 20000;
      const uint64_t alignment = uint64_t{1} << random() % 13;
      auto offset = ranges.allocate(size_bytes, alignment);
      if (!offset.has_value()) {
        ranges.extend((DlmRanges::needed(size_bytes, alignment) + 4095) / 4096 * 4096);
        offset = ranges.allocate(size_bytes, alignment);
      }
      ASSERT_TRUE(offset.has_value());
      ASSERT_EQ(*offset % alignment, 0u);
      ASSERT_LE(*offset + size_bytes, ranges.end());
      for (const auto& [other, length] : taken)
        ASSERT_TRUE(*offset + size_bytes <= other || other + length <= *offset);
      taken.emplace_back(*offset, size_bytes);
    } else {
      const size_t which = random() % taken.size();
      ASSERT_GE(ranges.free(taken[which].first).value_or(0), taken[which].second);
      taken[which] = taken.back();
      taken.pop_back();
    }
    ASSERT_TRUE(ranges.is_valid());
  }
  for (const auto& [offset, length] : taken) ASSERT_TRUE(ranges.free(offset).has_value());
  EXPECT_TRUE(ranges.is_valid());
  EXPECT_EQ(ranges.allocate(ranges.end(), 64), 0u) << "all of it is one range again";
}

}  // namespace
}  // namespace outcore::c
