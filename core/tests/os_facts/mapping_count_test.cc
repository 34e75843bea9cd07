#include "core/os/mapping_count.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>
#include <vector>

#include "core/base/units.h"

namespace outcore::os {
namespace {

using base::kSystemPage;
using Protection = MappingCount::Protection;

class MappingCounts : public testing::Test {
 protected:
  static constexpr uint64_t kPages = 1000;
  MappingCounts() { EXPECT_TRUE(count_.allocate(kPages * kSystemPage).ok()); }
  void set(uint64_t page, uint64_t pages, Protection protection) {
    count_.set(page * kSystemPage, pages * kSystemPage, protection);
    for (uint64_t i = page; i < page + pages; ++i) shown_[i] = protection;
  }
  // What the kernel would need, counted page by page, plus one for each stretch that has accessible
  // pages.
  uint64_t expected() const {
    uint64_t count = 0;
    for (uint64_t from = 0; from < kPages; from += 32) {
      bool is_shown = false;
      for (uint64_t i = from; i < std::min(from + 32, kPages); ++i) {
        is_shown = is_shown || shown_[i] != Protection::kNone;
        // The pages past the end of the last stretch stay hidden.
        const Protection next = i + 1 < kPages ? shown_[i + 1] : Protection::kNone;
        if (i + 1 < from + 32) count += shown_[i] != next;
      }
      count += is_shown;
    }
    return count;
  }
  MappingCount count_;
  std::vector<Protection> shown_ = std::vector<Protection>(kPages);
};

TEST_F(MappingCounts, NothingShownTakesNothing) {
  EXPECT_EQ(count_.count(), 0u);
  set(0, kPages, Protection::kNone);
  EXPECT_EQ(count_.count(), 0u);
}

TEST_F(MappingCounts, APageAmongHiddenOnesTakesTwoBesideItsStretch) {
  set(40, 1, Protection::kRead);
  EXPECT_EQ(count_.count(), 3u);
  set(41, 1, Protection::kRead);
  EXPECT_EQ(count_.count(), 3u) << "joined";
  set(41, 1, Protection::kWrite);
  EXPECT_EQ(count_.count(), 4u) << "of another protection";
  set(40, 2, Protection::kNone);
  EXPECT_EQ(count_.count(), 0u);
}

TEST_F(MappingCounts, NeighboursTakeOneForEachStretch) {
  set(0, 320, Protection::kWrite);
  EXPECT_EQ(count_.count(), 10u);
}

TEST_F(MappingCounts, RandomChangesAreCountedAsIfOneByOne) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const uint64_t page = random() % kPages;
    const uint64_t pages = std::min(kPages - page, 1 + random() % (random() % 4 == 0 ? 200 : 4));
    set(page, pages, static_cast<Protection>(random() % 3));
    ASSERT_EQ(count_.count(), expected()) << "change " << i;
  }
}

TEST_F(MappingCounts, ThreadsThatChangeTheSameStretchLoseNoChange) {
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([this, t] {
      for (uint64_t i = 0; i < 20'000; ++i)
        count_.set((t + 4 * (i % 8)) * kSystemPage, kSystemPage,
                   static_cast<Protection>((i / 8) % 3));
      for (uint64_t i = 0; i < 8; ++i) count_.set((t + 4 * i) * kSystemPage, kSystemPage, {});
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count_.count(), 0u);
}

TEST(MappingCountOfAll, IsTheSumAndForgetsWhatEnds) {
  const uint64_t before = MappingCount::count_of_all();
  {
    MappingCount a, b;
    ASSERT_TRUE(a.allocate(64 * kSystemPage).ok());
    ASSERT_TRUE(b.allocate(64 * kSystemPage).ok());
    a.set(0, kSystemPage, Protection::kRead);
    b.set(kSystemPage, kSystemPage, Protection::kRead);
    EXPECT_EQ(MappingCount::count_of_all(), before + a.count() + b.count());
  }
  EXPECT_EQ(MappingCount::count_of_all(), before);
  EXPECT_GT(MappingCount::limit(), 0u);
}

}  // namespace
}  // namespace outcore::os
