// MissCurve against memories of several sizes that are simulated one by one, with the policy that
// there is by default: it sees what a recorder sees of the smallest.
#include "core/recording/miss_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/policy/miniature.h"
#include "core/policy/probe_queue.h"
#include "core/published/events.h"

namespace outcore::recording {
namespace {

using policy::Miniature;
using published::EventRing;
using Trace = std::vector<uint64_t>;

constexpr uint64_t kPageBytes = 4096;
constexpr size_t kPages = 512, kTouches = 120'000;  // of the memory of now

// A pager, as far as its policy goes.
class Memory {
 public:
  Memory(size_t pages, const std::string& policy) {
    const auto frames = static_cast<uint32_t>(pages);
    EXPECT_TRUE(static_cast<bool>(cache_.allocate(policy, frames)));
    EXPECT_TRUE(static_cast<bool>(gone_.allocate()));
  }
  // True: a miss. `left`: pages that had to leave.
  bool touch(uint64_t page, bool is_guess, std::vector<uint64_t>* left) {
    left->clear();
    const PageKey key = (page + 1) * 0x9E3779B97F4A7C15ull;
    page_of_[key] = page;
    if (cache_.has(key)) return false;
    const bool is_miss =
        cache_.touch(key, FrameId{0}, is_guess, gone_) == Miniature::Outcome::kMiss;
    while (!gone_.is_empty()) left->push_back(page_of_[gone_.pop().key]);
    return is_miss;
  }

 private:
  Miniature cache_;
  policy::ProbeQueue gone_;
  std::unordered_map<PageKey, uint64_t> page_of_;
};

double misses_of(const Trace& trace, size_t pages, const std::string& policy = "s3-fifo") {
  Memory memory(pages, policy);
  std::vector<uint64_t> left;
  double misses = 0;
  for (const uint64_t page : trace) misses += memory.touch(page, false, &left);
  return misses;
}

void follow(const Trace& trace, size_t pages, uint64_t one_in, const std::string& policy,
            MissCurve* curve) {
  curve->sample_one_in(one_in);
  Memory memory(pages, policy);
  std::vector<uint64_t> left;
  for (const uint64_t page : trace) {
    const bool is_miss = memory.touch(page, false, &left);
    for (const uint64_t victim : left)
      if (EventRing::is_in_sample(victim, one_in)) curve->note_eviction(victim);
    if (is_miss && EventRing::is_in_sample(page, one_in)) curve->note_fill(page, kPageBytes, false);
  }
}

// Pages are numbers; how many there are in memories is kPages.
const std::map<std::string, std::function<Trace(std::mt19937_64&)>>& workloads() {
  static const std::map<std::string, std::function<Trace(std::mt19937_64&)>> all{
      {"even",
       [](auto& random) {
         Trace trace(kTouches);
         for (uint64_t& page : trace) page = random() % (3 * kPages);
         return trace;
       }},
      {"hot third",
       [](auto& random) {
         constexpr uint64_t kHot = 13 * kPages / 10;
         Trace trace(kTouches);
         for (uint64_t& page : trace)
           page = random() % 10 != 0 ? random() % kHot : kHot + random() % (2 * kHot);
         return trace;
       }},
      {"skewed",
       [](auto& random) {
         std::vector<double> weights(8 * kPages);
         for (size_t i = 0; i < weights.size(); ++i)
           weights[i] = 1 / std::pow(static_cast<double>(i + 1), 0.9);
         std::discrete_distribution<uint64_t> rank(weights.begin(), weights.end());
         Trace trace(kTouches);
         for (uint64_t& page : trace) page = rank(random) * 40'503 % weights.size();
         return trace;
       }},
      {"walk",
       [](auto& random) {
         Trace trace(kTouches);
         int64_t at = 4 * kPages;
         for (uint64_t& page : trace) {
           at += static_cast<int64_t>(random() % 65) - 32;
           at = std::clamp<int64_t>(at, 0, 8 * kPages - 1);
           page = static_cast<uint64_t>(at);
         }
         return trace;
       }},
      {"window",
       [](auto& random) {
         Trace trace(kTouches);
         for (size_t i = 0; i < trace.size(); ++i)
           trace[i] = i / 16 + random() % (13 * kPages / 10);
         return trace;
       }},
  };
  return all;
}
Trace trace_of(const std::string& workload) {
  std::mt19937_64 random(7);
  return workloads().at(workload)(random);
}
Trace circle(uint64_t pages, size_t touches) {
  Trace trace(touches);
  for (size_t i = 0; i < touches; ++i) trace[i] = i % pages;
  return trace;
}

// The largest difference to memories of other sizes, in misses of the one that there is.
double worst_error(const Trace& trace, uint64_t one_in, const std::string& policy = "s3-fifo") {
  MissCurve curve(policy, kPages * kPageBytes);
  follow(trace, kPages, one_in, policy, &curve);
  const double now = misses_of(trace, kPages, policy);
  double worst = 0;
  for (const size_t quarters : {5, 6, 8, 12}) {
    const size_t pages = kPages * quarters / 4;
    const double wanted = misses_of(trace, pages, policy) / now;
    const double found = curve.share_of_misses(pages * kPageBytes);
    worst = std::max(worst, std::abs(found - wanted));
  }
  return worst;
}

class OfWorkload : public testing::TestWithParam<const char*> {};

TEST_P(OfWorkload, IsWithinAFewPointsOfWhatEachBudgetWouldMiss) {
  EXPECT_LT(worst_error(trace_of(GetParam()), 1), 0.05);
}
// With so few pages told the miniature has 128 frames, and renews its main queue at other times.
TEST_P(OfWorkload, IsNearWhenOneInFourPagesIsTold) {
  EXPECT_LT(worst_error(trace_of(GetParam()), 4), 0.12);
}
TEST_P(OfWorkload, IsNearWithAnotherPolicy) {
  EXPECT_LT(worst_error(trace_of(GetParam()), 1, "fifo"), 0.10);
}
INSTANTIATE_TEST_SUITE_P(MissCurve, OfWorkload,
                         testing::Values("even", "hot third", "skewed", "walk", "window"),
                         [](const auto& one) {
                           std::string name = one.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(MissCurve, OfACircleEndsWhereAllOfItFits) {
  const Trace trace = circle(3 * kPages / 2, kTouches);
  for (const uint64_t one_in : {1u, 4u}) {
    MissCurve curve("fifo", kPages * kPageBytes);
    follow(trace, kPages, one_in, "fifo", &curve);
    EXPECT_GT(curve.share_of_misses(5 * kPages / 4 * kPageBytes), 0.95) << one_in;
    EXPECT_LT(curve.share_of_misses(7 * kPages / 4 * kPageBytes), 0.05) << one_in;
  }
}

TEST(MissCurve, ItsPointsBeginAtTheBudgetAndFallToWhatMoreMemoryCannotSave) {
  const Trace trace = trace_of("even");
  MissCurve curve("s3-fifo", kPages * kPageBytes);
  follow(trace, kPages, 1, "s3-fifo", &curve);
  const std::vector<MissCurve::Point> points = curve.points();
  ASSERT_GE(points.size(), 6u);
  ASSERT_LE(points.size(), MissCurve::kTimes.size() + 1);
  EXPECT_EQ(points.front().budget_bytes, kPages * kPageBytes);
  EXPECT_EQ(points.front().misses, 1);
  for (size_t i = 1; i < points.size(); ++i) {
    EXPECT_GT(points[i].budget_bytes, points[i - 1].budget_bytes);
    EXPECT_LE(points[i].misses, points[i - 1].misses);
    EXPECT_NEAR(points[i].misses, curve.share_of_misses(points[i].budget_bytes), 1e-6);
  }
  EXPECT_LE(points.back().budget_bytes, 4 * kPages * kPageBytes) << "more does not help";
  EXPECT_NEAR(points.back().misses, 3 * kPages / misses_of(trace, kPages), 0.01);
}

TEST(MissCurve, OfNothingHasNoPointsAndOfAFirstPassOne) {
  EXPECT_TRUE(MissCurve("s3-fifo", 1 << 20).points().empty());
  EXPECT_EQ(MissCurve("s3-fifo", 1 << 20).share_of_misses(2 << 20), 1);
  MissCurve pass("s3-fifo", kPages * kPageBytes);
  follow(circle(5000, 5000), kPages, 1, "s3-fifo", &pass);
  ASSERT_EQ(pass.points().size(), 1u);
  EXPECT_EQ(pass.share_of_misses(uint64_t{1} << 40), 1) << "no memory saves a first touch";
}

TEST(MissCurve, OfWhatFitsHasThePointOfNow) {
  MissCurve fits("s3-fifo", kPages * kPageBytes);
  follow(circle(kPages / 2, 5000), kPages, 1, "s3-fifo", &fits);
  ASSERT_EQ(fits.points().size(), 1u);
  EXPECT_EQ(fits.points().front().misses, 1);
}

// Large memories are followed by as few pages as small ones.
TEST(MissCurve, FollowsFewPagesOfALargeMemory) {
  constexpr size_t kLarge = 32 * 1024;
  std::mt19937_64 random(3);
  Trace trace(20 * kLarge);
  for (uint64_t& page : trace) page = random() % (2 * kLarge);
  MissCurve curve("s3-fifo", kLarge * kPageBytes);
  follow(trace, kLarge, 1, "s3-fifo", &curve);
  const double now = misses_of(trace, kLarge);
  EXPECT_NEAR(curve.share_of_misses(3 * kLarge / 2 * kPageBytes),
              misses_of(trace, 3 * kLarge / 2) / now, 0.08);
  EXPECT_NEAR(curve.share_of_misses(2 * kLarge * kPageBytes), misses_of(trace, 2 * kLarge) / now,
              0.08);
}

TEST(MissCurve, TheSampleMayBecomeSmallerAtAnyMoment) {
  const Trace trace = trace_of("even");
  MissCurve curve("s3-fifo", kPages * kPageBytes);
  Memory memory(kPages, "s3-fifo");
  std::vector<uint64_t> left;
  uint64_t one_in = 1;
  for (size_t i = 0; i < trace.size(); ++i) {
    if (i == kTouches / 4 || i == kTouches / 3) curve.sample_one_in(one_in *= 2);
    const bool is_miss = memory.touch(trace[i], false, &left);
    for (const uint64_t victim : left)
      if (EventRing::is_in_sample(victim, one_in)) curve.note_eviction(victim);
    if (is_miss && EventRing::is_in_sample(trace[i], one_in))
      curve.note_fill(trace[i], kPageBytes, false);
  }
  const double now = misses_of(trace, kPages);
  for (const size_t pages : {3 * kPages / 2, 2 * kPages})
    EXPECT_NEAR(curve.share_of_misses(pages * kPageBytes), misses_of(trace, pages) / now, 0.1);
}

TEST(MissCurve, PagesThatAreGoneAreNoPagesThatMoreMemoryHelps) {
  MissCurve curve("fifo", 4 * kPageBytes);
  const auto scan = [&](uint64_t first) {
    for (uint64_t page = first; page < first + 8; ++page) {
      if (page >= first + 4) curve.note_eviction(page - 4);
      curve.note_fill(page, kPageBytes, false);
    }
  };
  scan(0);
  curve.keep([](uint64_t page) { return page >= 8; });
  scan(0);
  EXPECT_EQ(curve.share_of_misses(1 << 30), 1);
  scan(0);
  EXPECT_LT(curve.share_of_misses(1 << 30), 0.9) << "these were not gone";
}

TEST(MissCurve, ARescueIsATouchThatALargerMemoryDoesNotCount) {
  MissCurve curve("s3-fifo", 4 * kPageBytes);
  for (uint64_t page = 0; page < 4; ++page) curve.note_fill(page, kPageBytes, false);
  for (int i = 0; i < 100; ++i) curve.note_rescue(1);
  curve.note_eviction(0);
  EXPECT_EQ(curve.share_of_misses(1 << 30), 1);
  EXPECT_EQ(curve.points().size(), 1u);
}

TEST(MissCurve, PagesOfSeveralSizesAreSoManyAsTheirBytesAreOfTheirMean) {
  MissCurve curve("fifo", 64 * 16 * kPageBytes);
  std::vector<uint64_t> in;
  for (int round = 0; round < 40; ++round)
    for (uint64_t page = 0; page < 96; ++page) {  // of 16 pages each: 1.5 times what there is
      if (in.size() >= 64) {
        curve.note_eviction(in.front());
        in.erase(in.begin());
      }
      curve.note_fill(page, 16 * kPageBytes, false);
      in.push_back(page);
    }
  EXPECT_GT(curve.share_of_misses(80 * 16 * kPageBytes), 0.9);
  EXPECT_LT(curve.share_of_misses(112 * 16 * kPageBytes), 0.1);
}

TEST(MissCurve, AnUnknownPolicyIsTheUsualOne) {
  const Trace trace = trace_of("even");
  MissCurve other("no-such-policy", kPages * kPageBytes), usual("s3-fifo", kPages * kPageBytes),
      automatic("auto", kPages * kPageBytes);
  for (MissCurve* const curve : {&other, &usual, &automatic})
    follow(trace, kPages, 1, "s3-fifo", curve);
  const uint64_t more = 2 * kPages * kPageBytes;
  EXPECT_EQ(other.share_of_misses(more), usual.share_of_misses(more));
  EXPECT_EQ(automatic.share_of_misses(more), usual.share_of_misses(more));
}

TEST(MissCurve, GuessesAreFillsButTellNothingOfWhenPagesReturn) {
  MissCurve curve("s3-fifo", 4 * kPageBytes);
  for (int round = 0; round < 200; ++round)
    for (uint64_t page = 0; page < 8; ++page) {
      curve.note_fill(page, kPageBytes, page % 2 == 1);
      curve.note_eviction(page);
    }
  EXPECT_LT(curve.share_of_misses(16 * kPageBytes), 0.2);
  EXPECT_EQ(curve.share_of_misses(4 * kPageBytes), 1);
}

// A region that ends has dropped its pages by the time the rest of what it did is told.
TEST(MissCurve, ARegionThatEndsDoesNotMakeTheBudgetSeemSmall) {
  constexpr uint64_t kBudget = 64 * kPageBytes;
  MissCurve curve("s3-fifo", kBudget);
  curve.set_memory(kBudget, kBudget);
  for (int round = 0; round < 40; ++round) {
    if (round == 1) curve.set_memory(0, kBudget);
    for (uint64_t page = 0; page < 128; ++page) {
      curve.note_fill(page, kPageBytes, false);
      curve.note_eviction(page);
    }
  }
  EXPECT_LT(curve.share_of_misses(3 * kBudget), 0.1);
}

// A budget that is doubled has no more of the same to offer.
TEST(MissCurve, AnotherBudgetCountsFromItsMomentOn) {
  const Trace trace = trace_of("even");
  MissCurve curve("s3-fifo", kPages * kPageBytes);
  follow(trace, kPages, 1, "s3-fifo", &curve);
  curve.set_memory(kPages * kPageBytes, 2 * kPages * kPageBytes);
  EXPECT_EQ(curve.points().front().budget_bytes, 2 * kPages * kPageBytes);
  EXPECT_EQ(curve.share_of_misses(2 * kPages * kPageBytes), 1);
}

}  // namespace
}  // namespace outcore::recording
