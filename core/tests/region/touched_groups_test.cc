#include "core/region/touched_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace outcore::region {
namespace {

constexpr uint64_t kPages = TouchedGroups::kPages;

std::vector<uint64_t> found(const TouchedGroups& touched, uint64_t first, uint64_t end) {
  std::vector<uint64_t> pages;
  for (uint64_t page = first; (page = touched.next(page, end)) < end; ++page) pages.push_back(page);
  return pages;
}

TEST(TouchedGroups, HaveNoPagesAtFirst) {
  TouchedGroups touched;
  ASSERT_TRUE(touched.allocate(1'000'000).ok());
  EXPECT_EQ(touched.next(0, 1'000'000), 1'000'000u);
  EXPECT_EQ(touched.next(999'999, 1'000'000), 1'000'000u);
  EXPECT_EQ(touched.next(7, 7), 7u);
  EXPECT_EQ(touched.next(9, 7), 7u);
}

TEST(TouchedGroups, HaveAllPagesOfAGroup) {
  TouchedGroups touched;
  ASSERT_TRUE(touched.allocate(1'000'000).ok());
  touched.add(5 * kPages + 17);
  touched.add(5 * kPages + 18);
  EXPECT_EQ(found(touched, 0, 1'000'000).size(), kPages);
  EXPECT_EQ(touched.next(0, 1'000'000), 5 * kPages);
  EXPECT_EQ(touched.next(5 * kPages + 9, 1'000'000), 5 * kPages + 9);
  EXPECT_EQ(touched.next(6 * kPages, 1'000'000), 1'000'000u);
  EXPECT_EQ(touched.next(0, 5 * kPages), 5 * kPages);
  EXPECT_EQ(found(touched, 5 * kPages + 500, 5 * kPages + 510).size(), 10u);
}

// At and beside the ends of words of 64 groups, and of the table.
TEST(TouchedGroups, AreFoundWhereverTheyAre) {
  for (const uint64_t pages : {uint64_t{1}, kPages, kPages + 1, 64 * kPages, 200 * kPages + 3}) {
    for (const uint64_t group : {0, 1, 62, 63, 64, 65, 127, 128, 199, 200}) {
      if (group * kPages >= pages) continue;
      TouchedGroups touched;
      ASSERT_TRUE(touched.allocate(pages).ok());
      const uint64_t first = group * kPages, end = std::min(pages, first + kPages);
      touched.add(end - 1);
      EXPECT_EQ(touched.next(0, pages), first) << pages;
      EXPECT_EQ(found(touched, 0, pages).size(), end - first) << pages;
      EXPECT_EQ(touched.next(end, pages), pages) << pages;
    }
  }
}

}  // namespace
}  // namespace outcore::region
