#include "core/recording/reuse_distances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/published/events.h"

namespace outcore::recording {
namespace {

constexpr uint64_t kPage = 4096;

struct Seen {
  uint64_t page, bytes;
};

struct Counts {
  uint64_t first = 0;
  std::array<uint64_t, ReuseDistances::kBuckets> again{};
  bool operator==(const Counts&) const = default;
};

// Looks back from each touch to the one before of the same page, and adds up what lies between.
Counts by_looking_back(const std::vector<Seen>& trace) {
  Counts counts;
  for (size_t i = 0; i < trace.size(); ++i) {
    std::set<uint64_t> between;
    uint64_t bytes = 0;
    size_t k = i;
    while (k-- > 0 && trace[k].page != trace[i].page)
      if (between.insert(trace[k].page).second) bytes += trace[k].bytes;
    if (k == SIZE_MAX)
      ++counts.first;
    else
      ++counts.again[ReuseDistances::bucket_of(bytes)];
  }
  return counts;
}

Counts counts_of(const ReuseDistances& distances) {
  return {distances.first_touches(), distances.touches_again()};
}

Counts by_distances(const std::vector<Seen>& trace) {
  ReuseDistances distances;
  for (const Seen& seen : trace) distances.note_touch(seen.page, seen.bytes);
  EXPECT_TRUE(distances.is_valid());
  return counts_of(distances);
}

TEST(ReuseDistances, BucketsArePowersOfTwoOf4KiB) {
  EXPECT_EQ(ReuseDistances::bucket_of(0), 0u);
  EXPECT_EQ(ReuseDistances::bucket_of(kPage), 1u);
  EXPECT_EQ(ReuseDistances::bucket_of(2 * kPage - 1), 1u);
  EXPECT_EQ(ReuseDistances::bucket_of(2 * kPage), 2u);
  EXPECT_EQ(ReuseDistances::bucket_of(kPage << 20), 21u);
  EXPECT_EQ(ReuseDistances::bucket_of(UINT64_MAX), ReuseDistances::kBuckets - 1);
}

TEST(ReuseDistances, OfAPageThatIsTouchedAgainAtOnceIsNothing) {
  const Counts counts = by_distances({{7, kPage}, {7, kPage}, {7, kPage}});
  EXPECT_EQ(counts.first, 1u);
  EXPECT_EQ(counts.again[0], 2u);
}

TEST(ReuseDistances, APageBetweenCountsOnceHoweverOftenItIsTouched) {
  const Counts counts = by_distances({{1, kPage}, {2, kPage}, {2, kPage}, {2, kPage}, {1, kPage}});
  EXPECT_EQ(counts.again[1], 1u);
  EXPECT_EQ(counts.again[0], 2u);
}

TEST(ReuseDistances, OfALoopAreTheLoop) {
  std::vector<Seen> trace;
  for (int pass = 0; pass < 3; ++pass)
    for (uint64_t page = 0; page < 64; ++page) trace.push_back({page, kPage});
  const Counts counts = by_distances(trace);
  EXPECT_EQ(counts.first, 64u);
  EXPECT_EQ(counts.again[ReuseDistances::bucket_of(63 * kPage)], 128u);
}

// Whoever looks back through all touches finds the same.
TEST(ReuseDistances, AreThoseOfWhoeverLooksBack) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const uint64_t pages = 1 + random() % 200;
    std::vector<Seen> trace;
    for (int i = 0; i < 1500; ++i) {
      // Some are touched more often; files have pages of different sizes.
      const uint64_t page = random() % 3 == 0 ? random() % pages : random() % (1 + pages / 8);
      trace.push_back({page, page % 5 == 0 ? 16 * kPage : kPage});
    }
    EXPECT_TRUE(by_distances(trace) == by_looking_back(trace)) << "seed " << seed;
  }
}

// Moments run out after 131,072 touches, and begin anew.
TEST(ReuseDistances, StayRightHoweverLongItGoesOn) {
  std::mt19937_64 random(3);
  std::vector<Seen> trace;
  for (int i = 0; i < 300'000; ++i) trace.push_back({random() % 40, kPage});
  EXPECT_TRUE(by_distances(trace) == by_looking_back(trace));
}

TEST(ReuseDistances, PagesThatAreGoneLieBetweenNoTouches) {
  ReuseDistances distances;
  for (const uint64_t page : {1, 2, 3, 4}) distances.note_touch(page, kPage);
  distances.keep([](uint64_t page) { return page != 2 && page != 3; });
  EXPECT_TRUE(distances.is_valid());
  distances.note_touch(1, kPage);  // 4 alone is between
  distances.note_touch(2, kPage);
  EXPECT_EQ(distances.first_touches(), 5u);
  EXPECT_EQ(distances.touches_again()[1], 1u);
}

// A sample of the pages tells as many touches, at the same distances, as all of them.
TEST(ReuseDistances, OfASampleAreNearlyThoseOfAll) {
  constexpr uint64_t kLoop = 8192, kRounds = 4;
  ReuseDistances all, sample;
  sample.sample_one_in(8);
  for (uint64_t i = 0; i < kLoop * kRounds; ++i) {
    all.note_touch(i % kLoop, kPage);
    sample.note_touch(i % kLoop, kPage);
  }
  EXPECT_EQ(sample.sampled_one_in(), 8u);
  const size_t bucket = ReuseDistances::bucket_of((kLoop - 1) * kPage);
  EXPECT_EQ(all.touches_again()[bucket], kLoop * (kRounds - 1));
  const uint64_t near = sample.touches_again()[bucket] + sample.touches_again()[bucket + 1];
  EXPECT_NEAR(static_cast<double>(near), kLoop * (kRounds - 1.0), 0.1 * kLoop * kRounds);
  EXPECT_NEAR(static_cast<double>(sample.first_touches()), kLoop, 0.1 * kLoop);
}

TEST(ReuseDistances, OfMorePagesThanThereIsRoomForASampleIsLookedAt) {
  ReuseDistances distances;
  constexpr uint64_t kMany = 5 * ReuseDistances::kPagesMax;
  for (int pass = 0; pass < 2; ++pass)
    for (uint64_t page = 0; page < kMany; ++page) distances.note_touch(page, kPage);
  EXPECT_TRUE(distances.is_valid());
  EXPECT_GE(distances.sampled_one_in(), 8u);
  uint64_t touches = distances.first_touches();
  for (const uint64_t count : distances.touches_again()) touches += count;
  EXPECT_NEAR(static_cast<double>(touches), 2.0 * kMany, 0.05 * 2 * kMany);
}

TEST(ReuseDistances, AreToldUpToTheLastThatIsNotZero) {
  ReuseDistances distances;
  EXPECT_EQ(distances.to_json().dump(), R"({"again":[],"first":0,"sampled_one_in":1})");
  for (const uint64_t page : {1, 2, 1, 1}) distances.note_touch(page, kPage);
  EXPECT_EQ(distances.to_json().dump(), R"({"again":[1,1],"first":2,"sampled_one_in":1})");
}

}  // namespace
}  // namespace outcore::recording
