// StreamTable: simulated readers over a set of resident pages.
#include "core/prefetch/stream_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "core/tests/prefetch/miss.h"
#include "tests/share.h"

namespace outcore::prefetch {
namespace {

constexpr uint64_t kPageEnd = 1 << 20;
constexpr uint32_t kWindowMax = 512;

uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

// A thread that reads, and a prefetcher that fills advised pages at once, except those it drops.
struct Reader {
  StreamTable table{};
  std::unordered_set<uint64_t> resident;
  uint64_t cache = 1, page_end = kPageEnd;
  uint32_t window_max = kWindowMax;
  bool is_sequential = false, drops = false;
  uint64_t misses = 0, advised = 0, useless = 0;

  // Returns whether it missed.
  bool read(uint64_t page) {
    if (!resident.insert(page).second) return false;
    ++misses;
    const StreamTable::Advice ahead =
        miss(table, cache, page, window_max, page_end, is_sequential, false, {this, is_absent});
    EXPECT_TRUE(table.is_valid());
    for (uint32_t i = 0; i < ahead.run_count; ++i) take(ahead.run[i]);
    return true;
  }
  static bool is_absent(const void* of, uint64_t page) {
    return !static_cast<const Reader*>(of)->resident.contains(page);
  }
  void take(const PageRun& run) {
    EXPECT_GT(run.count, 0u);
    for (uint32_t i = 0; i < run.count; ++i) {
      const uint64_t page = run.first_page + static_cast<uint64_t>(run.stride * i);
      EXPECT_LT(page, page_end);
      ++advised;
      if (!drops && !resident.insert(page).second) ++useless;
    }
  }
};

// How many misses a scan of `count` pages may have: those that show the stream, one a window while
// it grows (as fast as it earns credit), and one a full window.
uint64_t misses_max(uint64_t count, uint32_t window_max = kWindowMax) {
  return 4 + 30 + count / window_max + 1;
}

TEST(StreamTable, AForwardScanMissesOncePerWindow) {
  Reader reader;
  for (uint64_t page = 0; page < 100'000; ++page) reader.read(page);
  EXPECT_LE(reader.misses, misses_max(100'000));
  EXPECT_EQ(reader.useless, 0u);
  EXPECT_LE(reader.advised, 100'000 + 2 * kWindowMax);
}

TEST(StreamTable, ThreeNeighboursStartAStreamOfFourPages) {
  StreamTable table{};
  EXPECT_EQ(miss(table, 1, 10, 64, 100, false, false).run_count, 0u);
  EXPECT_EQ(miss(table, 1, 11, 64, 100, false, false).run_count, 0u);
  const auto ahead = miss(table, 1, 12, 64, 100, false, false);
  ASSERT_EQ(ahead.run_count, 1u);
  EXPECT_EQ(ahead.run[0].first_page, 13u);
  EXPECT_EQ(ahead.run[0].stride, 1);
  EXPECT_EQ(ahead.run[0].count, 4u);
}

TEST(StreamTable, AWindowOfEightLeavesItsTripwireOutAndGoesOnWhenTheReaderTripsIt) {
  StreamTable table{};
  for (const uint64_t page : {0, 1, 2}) miss(table, 1, page, 64, 1000, false, false);  // 3 … 6
  const auto second = miss(table, 1, 7, 64, 1000, false, false);
  ASSERT_EQ(second.run_count, 2u);
  EXPECT_EQ(second.run[0].first_page, 8u);
  EXPECT_EQ(second.run[0].count, 4u);
  EXPECT_EQ(second.run[1].first_page, 13u) << "12 is the tripwire";
  EXPECT_EQ(second.run[1].count, 3u);
  const auto third = miss(table, 1, 12, 64, 1000, false, false);
  ASSERT_EQ(third.run_count, 2u);
  EXPECT_EQ(third.run[0].first_page, 16u) << "13 to 15 are still ahead";
  EXPECT_EQ(third.run[0].count, 8u);
  EXPECT_EQ(third.run[1].first_page, 25u);
  EXPECT_EQ(third.run[1].count, 7u);
}

TEST(StreamTable, ABackwardScanMissesOncePerWindowAndEndsAtPageZero) {
  Reader reader;
  for (uint64_t page = 50'000; page-- > 0;) reader.read(page);
  EXPECT_LE(reader.misses, misses_max(50'000));
  EXPECT_LE(reader.advised, 50'000u);
}

TEST(StreamTable, StridesMissOncePerWindowInBothDirections) {
  for (const uint64_t stride : {2, 3, 17, 1024}) {
    for (const bool is_backward : {false, true}) {
      Reader reader;
      const uint64_t count = std::min<uint64_t>(kPageEnd / stride, 100 * kWindowMax);
      for (uint64_t i = 0; i < count; ++i) reader.read((is_backward ? count - 1 - i : i) * stride);
      EXPECT_LE(reader.misses, misses_max(count)) << stride;
      // What is ahead where the reader stops is advised in vain.
      const bool stops_early = count < kPageEnd / stride;
      EXPECT_LE(reader.advised, count + (stops_early ? kWindowMax : 0)) << stride;
    }
  }
}

TEST(StreamTable, AStrideTooLongIsNoStream) {
  Reader reader;
  for (uint64_t i = 0; i < 100; ++i) reader.read(i * 1025);
  EXPECT_EQ(reader.advised, 0u);
}

TEST(StreamTable, InterleavedStreamsAreFollowedEach) {
  Reader reader;
  for (uint64_t i = 0; i < 20'000; ++i) {
    reader.read(i);
    reader.read(200'000 + 3 * i);
    reader.read(500'000 - i);
    reader.read(700'000 + 17 * (i % 20'000));
  }
  EXPECT_LE(reader.misses, 5 * misses_max(20'000));
}

// A stencil reads its coefficients like this.
TEST(StreamTable, AsManyArraysAsAStencilHasAreFollowedEach) {
  Reader reader;
  for (uint64_t i = 0; i < 5'000; ++i)
    for (uint64_t array = 0; array < 20; ++array) reader.read(array * 40'000 + i);
  EXPECT_LE(reader.misses, 100'000 / 60) << "they earn their credit together";
}

TEST(StreamTable, AStreamIsFoundAndKeptAmongRandomMisses) {
  Reader reader;
  uint64_t missed_by_scan = 0;
  for (uint64_t i = 0; i < 50'000; ++i) {
    missed_by_scan += reader.read(i);
    reader.read(100'000 + mixed(i) % 900'000);
  }
  EXPECT_LE(missed_by_scan, misses_max(50'000));
}

TEST(StreamTable, CachesDoNotMix) {
  StreamTable table{};
  for (uint64_t page = 0; page < 30; ++page)
    EXPECT_EQ(miss(table, page, page, 64, 100, false, false).run_count, 0u) << page;
}

TEST(StreamTable, ThePagesOfTwoCachesAreTwoStreams) {
  StreamTable table{};
  uint64_t advised = 0;
  for (const uint64_t page : {0, 1, 2})
    for (const uint64_t cache : {7, 8})
      advised += miss(table, cache, page, 64, 100, false, false).run_count;
  EXPECT_EQ(advised, 2u);
}

// OUTCORE_TEST_SHARE=N: one miss in N.
TEST(StreamTable, RandomMissesHardlyEverStartAStream) {
  StreamTable table{};
  uint64_t advised = 0;
  for (uint64_t i = 0; i < scene::share_of(1'000'000); ++i) {
    const auto ahead = miss(table, 1, mixed(i) % kPageEnd, kWindowMax, kPageEnd, false, false);
    for (uint32_t r = 0; r < ahead.run_count; ++r) advised += ahead.run[r].count;
  }
  EXPECT_LT(advised, 1000u);
}

TEST(StreamTable, RandomMissesInAFewPagesStartFewStreams) {
  StreamTable table{};
  uint64_t advised = 0;
  for (uint64_t i = 0; i < scene::share_of(1'000'000); ++i) {
    const auto ahead = miss(table, 1, mixed(i) % 16384, kWindowMax, 16384, false, false);
    for (uint32_t r = 0; r < ahead.run_count; ++r) advised += ahead.run[r].count;
  }
  EXPECT_LT(advised, 20'000u);
}

TEST(StreamTable, WasteHalvesTheWindow) {
  Reader reader;
  uint64_t page = 0;
  for (; reader.advised < 10'000 || !reader.read(page); ++page)
    reader.read(page);  // at full speed, at a tripwire
  // Issued pages are evicted before they are used.
  std::vector<uint32_t> windows;
  for (int i = 0; i < 2000; ++i) {
    const auto ahead = miss(reader.table, 1, ++page, kWindowMax, kPageEnd, false, false);
    uint32_t count = 0;
    for (uint32_t r = 0; r < ahead.run_count; ++r) count += ahead.run[r].count + 1;
    if (count > 0) windows.push_back(count);
    if (windows.size() == 4) break;
  }
  ASSERT_EQ(windows.size(), 4u);
  for (size_t i = 1; i < windows.size(); ++i) EXPECT_LE(windows[i], windows[i - 1] / 2 + 2) << i;
}

TEST(StreamTable, WherePrefetchesAreAlwaysWastedTheyBecomeFew) {
  Reader reader;
  reader.drops = true;
  for (uint64_t page = 0; page < 10'000; ++page) reader.read(page);
  EXPECT_EQ(reader.misses, 10'000u);
  EXPECT_LE(reader.advised, 500u);
  EXPECT_GT(reader.advised, 100u) << "it is tried again now and then";
}

TEST(StreamTable, ReadaheadComesBackWhenItPaysAgain) {
  Reader reader;
  reader.drops = true;
  for (uint64_t page = 0; page < 10'000; ++page) reader.read(page);
  reader.drops = false;
  reader.misses = 0;
  for (uint64_t page = 10'000; page < 60'000; ++page) reader.read(page);
  EXPECT_LE(reader.misses, 300 + misses_max(50'000));
}

TEST(StreamTable, OneWindowOfUseForgivesWasteOfLongAgo) {
  StreamTable table{};
  uint64_t page = 0;
  const auto is_advised = [&] {
    return miss(table, 1, page++, kWindowMax, kPageEnd, false, false).run_count > 0;
  };
  const auto rest = [&] {
    int misses = 0;
    while (!is_advised()) ++misses;
    return misses;
  };
  for (int i = 0; i < 10'000; ++i) is_advised();  // always in vain
  EXPECT_GT(rest() + rest(), 128);
  page += StreamTable::kFirstWindow;  // this window is used
  EXPECT_TRUE(is_advised()) << "the reader arrived: 8 pages";
  EXPECT_EQ(rest(), 2) << "the third page in vain halves the window";
  EXPECT_LE(rest(), 1 + static_cast<int>(StreamTable::kRest)) << "the second one ends it";
}

TEST(StreamTable, AReaderFasterThanThePrefetcherIsNotWaste) {
  StreamTable table{};
  uint64_t advised = 0;
  for (uint64_t page = 0; page < 10'000; ++page) {
    const auto ahead = miss(table, 1, page, kWindowMax, kPageEnd, false, page > 2);
    for (uint32_t r = 0; r < ahead.run_count; ++r) advised += ahead.run[r].count;
  }
  EXPECT_GE(advised, 10'000 - 200u);
}

TEST(StreamTable, ASequentialReaderStartsAtTheLargestWindow) {
  StreamTable table{};
  const auto ahead = miss(table, 1, 0, 64, 1000, true, false);
  ASSERT_EQ(ahead.run_count, 2u);
  EXPECT_EQ(ahead.run[0].count + ahead.run[1].count, 63u);
}

TEST(StreamTable, AWrongPromiseToGoForwardDoesNotHideABackwardReader) {
  Reader reader;
  reader.is_sequential = true;
  for (uint64_t page = 50'000; page-- > 0;) reader.read(page);
  EXPECT_LE(reader.misses, misses_max(50'000));
  EXPECT_LE(reader.advised, 51'000u);
}

TEST(StreamTable, PagesFoundResidentOnTheWayDoNotEndTheStream) {
  Reader reader;
  for (uint64_t page = 0; page < 50'000; ++page)
    if (page / 100 % 2 == 0) reader.resident.insert(page);
  for (uint64_t page = 0; page < 50'000; ++page) reader.read(page);
  EXPECT_LE(reader.misses, 2 * misses_max(50'000));
}

TEST(StreamTable, ATripwireThatSomebodyElseFilledDoesNotEndTheStream) {
  StreamTable table{};
  for (const uint64_t page : {0, 1, 2, 7})
    miss(table, 1, page, 64, 1000, false, false);  // 8 … 15 but 12
  const auto ahead = miss(table, 1, 16, 64, 1000, false, false);
  ASSERT_GE(ahead.run_count, 1u);
  EXPECT_EQ(ahead.run[0].first_page, 17u);
  EXPECT_EQ(ahead.run[0].count, 8u);
}

TEST(StreamTable, AnotherScanOfTheSamePagesIsDetectedAnew) {
  Reader reader;
  for (int pass = 0; pass < 5; ++pass) {
    reader.resident.clear();
    for (uint64_t page = 0; page < 10'000; ++page) reader.read(page);
  }
  EXPECT_LE(reader.misses, 5 * misses_max(10'000));
}

TEST(StreamTable, NothingIsAdvisedPastTheEndOrWithoutAWindow) {
  Reader reader;
  reader.page_end = 20;
  for (uint64_t page = 0; page < 20; ++page) reader.read(page);
  EXPECT_LE(reader.advised, 17u);
  StreamTable table{};
  for (uint64_t page = 0; page < 100; ++page)
    EXPECT_EQ(miss(table, 1, page, 0, 1000, true, false).run_count, 0u);
}

TEST(StreamTable, StaysValidAndWithinBoundsUnderAnyMisses) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    StreamTable table{};
    const uint64_t page_end = 1 + mixed(seed) % 300;
    for (uint64_t i = 0; i < 4000; ++i) {
      const uint64_t r = mixed(seed << 32 | i);
      const auto window_max = static_cast<uint32_t>(r >> 40 & 31);
      const auto ahead = miss(table, r >> 32 & 1, r % page_end, window_max, page_end,
                              (r >> 33 & 15) == 0, (r >> 37 & 1) == 0);
      ASSERT_TRUE(table.is_valid());
      ASSERT_LE(ahead.run_count, 2u);
      uint64_t count = 0;
      for (uint32_t k = 0; k < ahead.run_count; ++k) {
        const PageRun& run = ahead.run[k];
        ASSERT_GT(run.count, 0u);
        ASSERT_LT(run.first_page, page_end);
        const int64_t last = static_cast<int64_t>(run.first_page) + run.stride * (run.count - 1);
        ASSERT_GE(last, 0);
        ASSERT_LT(last, static_cast<int64_t>(page_end));
        count += run.count;
      }
      ASSERT_LE(count, window_max);
    }
  }
}

TEST(StreamTable, AReaderThatGoesOnBeyondAClusterIsAStream) {
  for (const int64_t stride : {1, -1}) {
    StreamTable table{};
    EXPECT_EQ(miss(table, 1, 1005, kWindowMax, kPageEnd, false, false).stride, 0);
    table.on_cluster(1, 1000, 1016);
    EXPECT_EQ(miss(table, 1, 5000, kWindowMax, kPageEnd, false, false).stride, 0);
    const uint64_t next = stride > 0 ? 1016 : 999;
    EXPECT_EQ(miss(table, 1, next, kWindowMax, kPageEnd, false, false).stride, stride);
  }
}

TEST(StreamTable, AMissNotNextToAClusterIsNoStream) {
  StreamTable table{};
  EXPECT_EQ(miss(table, 1, 1005, kWindowMax, kPageEnd, false, false).stride, 0);
  table.on_cluster(1, 1000, 1016);
  for (const uint64_t page : {1018u, 990u, 1050u})
    EXPECT_EQ(miss(table, 1, page, kWindowMax, kPageEnd, false, false).stride, 0) << page;
  EXPECT_EQ(miss(table, 2, 1016, kWindowMax, kPageEnd, false, false).stride, 0);
}

}  // namespace
}  // namespace outcore::prefetch
