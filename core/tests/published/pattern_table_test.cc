// PatternTable: how the misses of one thread at one place follow each other.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>

#include "core/published/events.h"

namespace outcore::published {
namespace {

constexpr uint64_t kPage = 4096, kSite = 0x401234;

class Patterns : public testing::Test {
 protected:
  // How many of the misses that `offset_of` gives have which pattern; the first two begin it.
  template <typename F>
  std::array<int, 3> count(const F& offset_of, uint64_t site = kSite) {
    std::array<int, 3> counts{};
    for (uint64_t i = 0; i < 100; ++i) {
      const Pattern pattern = table_->note(1, site, 3, offset_of(i));
      if (i >= 2) ++counts[static_cast<size_t>(pattern)];
    }
    return counts;
  }
  const std::unique_ptr<PatternTable> table_ = std::make_unique<PatternTable>();
};

using Counts = std::array<int, 3>;  // random, sequential, strided

TEST_F(Patterns, StepsOfAMebibyteAtMostAreSequentialForwardsAndBackwards) {
  EXPECT_EQ(count([](uint64_t i) { return i * kPage; }), (Counts{0, 98, 0}));
  EXPECT_EQ(count([](uint64_t i) { return (1000 - i) * kPage; }, kSite + 1), (Counts{0, 98, 0}));
  EXPECT_EQ(count([](uint64_t i) { return i * PatternTable::kNearBytes; }, kSite + 2),
            (Counts{0, 98, 0}));
}

TEST_F(Patterns, EvenStepsThatAreLongerAreStrided) {
  EXPECT_EQ(count([](uint64_t i) { return i * (PatternTable::kNearBytes + kPage); }),
            (Counts{0, 0, 98}));
  EXPECT_EQ(count([](uint64_t i) { return (1000 - i) * (8 << 20); }, kSite + 1),
            (Counts{0, 0, 98}));
}

TEST_F(Patterns, WhatJumpsAboutIsRandom) {
  std::mt19937_64 random(1);
  const Counts counts = count([&](uint64_t) { return random() % (1ull << 40) / kPage * kPage; });
  EXPECT_GE(counts[0], 95);
}

TEST_F(Patterns, WhatJumpsAboutInASmallFileIsRandom) {
  std::mt19937_64 random(1);
  const Counts counts = count([&](uint64_t) { return random() % (8 << 20) / kPage * kPage; });
  EXPECT_GE(counts[0], 85);
}

TEST_F(Patterns, EvenStepsOfWhichSomeWereInMemoryAreStrided) {
  constexpr uint64_t kStep = 5 << 20;
  uint64_t at = 0;
  const Counts counts = count([&](uint64_t i) { return at += kStep * (1 + i % 3); });
  EXPECT_EQ(counts, (Counts{0, 0, 98}));
}

TEST_F(Patterns, TheFirstMissAtAPlaceHasNone) {
  EXPECT_EQ(table_->note(1, kSite, 3, 0), Pattern::kRandom);
  EXPECT_EQ(table_->note(1, kSite, 3, kPage), Pattern::kSequential);
}

TEST_F(Patterns, ThreadsPlacesAndStoresAreToldApart) {
  int others = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    others += table_->note(1, kSite, 3, i * kPage) != Pattern::kSequential;
    others += table_->note(2, kSite, 3, (1ull << 40) + i * kPage) != Pattern::kSequential;
    others += table_->note(1, kSite + 8, 3, (1ull << 41) + i * kPage) != Pattern::kSequential;
    others += table_->note(1, kSite, 4, (1ull << 42) + i * kPage) != Pattern::kSequential;
  }
  EXPECT_EQ(others, 4) << "the first of each";
}

}  // namespace
}  // namespace outcore::published
