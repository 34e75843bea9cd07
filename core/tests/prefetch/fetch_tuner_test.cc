// The tuner against readers whose habits are known, in a model of memory.
#include "core/prefetch/fetch_tuner.h"

#include <gtest/gtest.h>

#include "core/tests/prefetch/model_memory.h"
#include "core/tests/sim/random.h"
#include "tests/share.h"

namespace outcore::prefetch {
namespace {

TEST(FetchTuner, WithoutRoomAndEvidenceThePageComesInAlone) {
  ModelMemory memory(1 << 20, 1000);
  EXPECT_TRUE(memory.touch(70'000));
  EXPECT_EQ(memory.choice().level, 0u);
  EXPECT_EQ(memory.choice().left_out, FetchTuner::kNone);
}

TEST(FetchTuner, AGuessTakesAtMostTwiceTheTimeOfItsMiss) {
  ModelMemory memory(1 << 20, 1000);
  memory.set_room(true, false);
  memory.touch(70'000);
  EXPECT_FALSE(memory.choice().is_proven);
  const uint64_t more = (1 << memory.choice().level) - 1;
  EXPECT_GT(more, 0u);
  EXPECT_LE(more * FetchCost::kFirstPageNs, 2 * FetchCost::kFirstMissNs);
}

TEST(FetchTuner, BringsInWhatFitsByFewMisses) {
  constexpr uint64_t kPages = 16384;
  ModelMemory memory(kPages, 2 * kPages);
  memory.set_room(true, true);
  sim::Random random(1);
  for (uint64_t i = 0; i < 8 * kPages; ++i) memory.touch(random.below(kPages));
  EXPECT_LT(memory.misses(), kPages / 20);
}

TEST(FetchTuner, ReadersOfSinglePagesGetSinglePages) {
  ModelMemory memory(1 << 20, 8192);
  sim::Random random(2);
  for (int i = 0; i < 100'000; ++i) memory.touch(random.below(1 << 20));
  EXPECT_LT(memory.brought_in(), memory.misses() + memory.misses() / 50);
}

TEST(FetchTuner, ReadersOfWholeExtentsGetLargeClusters) {
  ModelMemory memory(1 << 20, 8192);
  sim::Random random(3);
  for (uint64_t extent = 0; extent < 100; ++extent) read_all(memory, 7 * extent, random);
  memory.start_counting();
  for (uint64_t extent = 100; extent < 200; ++extent) read_all(memory, 7 * extent, random);
  EXPECT_LT(memory.misses(), 100 * kExtentPages / 10);
  EXPECT_EQ(memory.brought_in(), 100 * kExtentPages);
}

TEST(FetchTuner, PartsOfAFileAreToldApart) {
  constexpr uint64_t kHalf = 1 << 19;
  ModelMemory memory(2 * kHalf, 16384);
  sim::Random random(4);
  // The same code reads runs of 64 pages in the first half, single pages in the second.
  const auto read = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const uint64_t run = random.below(kHalf / 64) * 64;
      for (uint64_t k = 0; k < 64; ++k) {
        memory.touch(run + (k * 37 + 5) % 64);
        if (k % 4 == 0) memory.touch(kHalf + random.below(kHalf));
      }
    }
  };
  read(4000);
  memory.start_counting();
  read(1000);
  // Of 80,000 touches 16,000 have to be misses.
  EXPECT_LT(memory.misses(), 28'000u);
  EXPECT_LT(memory.brought_in(), 100'000u);
}

TEST(FetchTuner, PlacesInTheCodeAreToldApartInNewExtents) {
  constexpr uint64_t kExtents = 2000;
  ModelMemory memory(2 * kExtents * kExtentPages, 16384);
  sim::Random random(5);
  uint64_t guesses_of_one = 0, misses_of_all = 0;
  for (uint64_t extent = 0; extent < kExtents; ++extent) {
    // One place reads one page of each extent, the other reads whole ones.
    const bool is_first = memory.touch(extent * kExtentPages + random.below(kExtentPages), 11);
    if (extent >= kExtents / 2 && is_first && memory.choice().level != 0) ++guesses_of_one;
    const uint64_t before = memory.misses();
    if (extent % 8 == 0) read_all(memory, kExtents + extent, random, 22);
    if (extent >= kExtents / 2) misses_of_all += memory.misses() - before;
  }
  EXPECT_LT(guesses_of_one, kExtents / 2 / 50);
  EXPECT_LT(misses_of_all, kExtents / 16 * kExtentPages / 10);
}

TEST(FetchTuner, DearPagesComeInOnlyIfMostAreUsed) {
  // Half of all pages are used. A page costs a hundredth of a miss, then a half of it.
  for (const uint64_t page_ns : {600, 30'000}) {
    ModelMemory memory(1 << 20, 8192);
    memory.set_page_ns(page_ns);
    sim::Random random(6);
    for (uint64_t extent = 0; extent < 300; ++extent) {
      if (extent == 200) memory.start_counting();
      for (uint64_t i = 0; i < kExtentPages; ++i)
        if (random.below(2) == 0)
          memory.touch(extent * kExtentPages + (i * 129 + 7) % kExtentPages);
    }
    if (page_ns == 600)
      EXPECT_LT(memory.misses(), 100 * kExtentPages / 2 / 4) << page_ns;
    else
      EXPECT_LT(memory.brought_in(), 100 * kExtentPages * 7 / 10) << page_ns;
  }
}

TEST(FetchTuner, WhatIsLeftOutTellsHowMuchIsUsed) {
  for (const uint64_t tenths : {2, 5, 9}) {
    ModelMemory memory(1 << 22, 1 << 20);
    memory.set_room(true, false);
    sim::Random random(7);
    for (uint64_t extent = 0; extent < 2000; ++extent)
      for (uint64_t i = 0; i < kExtentPages; ++i)
        if (random.below(10) < tenths)
          memory.touch(extent * kExtentPages + (i * 129 + 7) % kExtentPages);
    const double share = static_cast<double>(memory.history().counts.left_out_used.load()) /
                         static_cast<double>(memory.history().counts.left_out.load());
    EXPECT_GT(memory.history().counts.left_out.load(), 1000u);
    EXPECT_NEAR(share, static_cast<double>(tenths) / 10, 0.05) << tenths;
  }
}

TEST(FetchTuner, HabitsThatChangeAreUnlearnt) {
  ModelMemory memory(1 << 20, 8192);
  sim::Random random(8);
  for (uint64_t extent = 0; extent < 100; ++extent) read_all(memory, extent, random);
  for (int i = 0; i < 5'000; ++i) memory.touch((1 << 18) + random.below(3 << 18));
  memory.start_counting();
  for (int i = 0; i < 20'000; ++i) memory.touch((1 << 18) + random.below(3 << 18));
  EXPECT_LT(memory.brought_in(), memory.misses() * 11 / 10);
}

// Whatever comes along is used as often as what leaves for it: nothing is gained, so nothing should
// come along. By a device of 60 µs, by one of half a millisecond, and where pages are dear.
TEST(FetchTuner, EvenTouchesOfMoreThanMemoryBringInLittleThatIsNotAskedFor) {
  constexpr uint64_t kHot = 17'066;  // a third of a file of 200 MiB
  for (const uint64_t tenths : scene::share_of({11, 13, 20, 40})) {
    uint64_t misses_by_page = 0;
    for (const uint64_t page_ns : {0, 4'000, 600, 20'000}) {
      ModelMemory memory(3 * kHot, kHot * 10 / tenths);
      if (page_ns == 0)
        memory.set_by_page();
      else
        memory.set_page_ns(page_ns);
      sim::Random random(10);
      for (int i = 0; i < 1'000'000; ++i) memory.touch(random.below(kHot));
      memory.start_counting();
      for (int i = 0; i < 200'000; ++i) memory.touch(random.below(kHot));
      if (page_ns == 0) misses_by_page = memory.misses();
      EXPECT_LE(memory.brought_in() * 100, memory.misses() * 115) << tenths << ' ' << page_ns;
      EXPECT_LE(memory.misses() * 100, misses_by_page * 102) << tenths << ' ' << page_ns;
    }
  }
}

TEST(FetchTuner, WhatIsReadAgainAndAgainComesInByLargeClusters) {
  for (const uint64_t tenths : {11, 13, 20}) {
    constexpr uint64_t kExtents = 32, kPages = kExtents * kExtentPages;
    ModelMemory memory(kPages, kPages * 10 / tenths);
    sim::Random random(11);
    for (int round = 0; round < 24; ++round) {
      if (round == 12) memory.start_counting();
      for (uint64_t extent = 0; extent < kExtents; ++extent) read_all(memory, extent, random);
    }
    EXPECT_LT(memory.misses(), 12 * kPages / 8) << tenths;
  }
}

// Clusters that come in before a watched page could be asked for are no proof that it is used.
TEST(FetchTuner, PlacesThatLookUsedByChanceAreUnlearnt) {
  ModelMemory memory(1 << 16, 1 << 14);
  sim::Random random(12);
  for (uint64_t extent = 0; extent < 64; ++extent) read_all(memory, extent, random);
  for (int i = 0; i < 300'000; ++i) memory.touch(random.below(1 << 16));
  memory.start_counting();
  for (int i = 0; i < 100'000; ++i) memory.touch(random.below(1 << 16));
  EXPECT_LT(memory.brought_in(), memory.misses() * 110 / 100);
}

TEST(EvictionWorth, IsTwiceWhatComesBackSoonAndNeverNothing) {
  EvictionWorth worth;
  EXPECT_NEAR(worth.share(), 0.22, 1e-9);
  for (int i = 0; i < 100; ++i) {
    worth.note_gone();
    if (i % 3 == 0) worth.note_back();
  }
  EXPECT_NEAR(worth.share(), 2.0 / 3, 0.1);
  for (int i = 0; i < 100; ++i) worth.note_gone(), worth.note_back();
  EXPECT_LE(worth.share(), 1.0);
  for (int i = 0; i < 1000; ++i) worth.note_gone();
  EXPECT_NEAR(worth.share(), 0.22, 1e-9);
}

TEST(EvictionWorth, LooksAtEachPageOfItsSampleInTurn) {
  EvictionWorth worth;
  EvictionWorth::Page* first = nullptr;
  uint32_t looks = 0;
  for (uint32_t i = 0; i < EvictionWorth::kSample * EvictionWorth::kDecisionsALook; ++i) {
    EvictionWorth::Page* page = worth.next();
    if (page == nullptr) continue;
    if (first == nullptr) first = page;
    ++looks;
  }
  EXPECT_EQ(looks, EvictionWorth::kSample);
  EXPECT_EQ(worth.next(), first);
}

TEST(FetchCost, FollowsWhatIsMeasured) {
  FetchCost cost;
  EXPECT_EQ(cost.miss_ns(), FetchCost::kFirstMissNs);
  for (int i = 0; i < 100; ++i) cost.note(1, 10'000), cost.note(11, 30'000);
  EXPECT_NEAR(static_cast<double>(cost.miss_ns()), 10'000, 100);
  EXPECT_NEAR(static_cast<double>(cost.page_ns()), 2'000, 100);
}

TEST(FetchCost, OneSampleFarOutChangesLittle) {
  FetchCost cost;
  for (int i = 0; i < 100; ++i) cost.note(1, 10'000);
  cost.note(1, 1'000'000'000);
  EXPECT_LT(cost.miss_ns(), 15'000u);
}

TEST(UseEvidence, IsThePriorAtFirstAndTheCountsLater) {
  UseEvidence evidence;
  EXPECT_DOUBLE_EQ(evidence.share(3, 0.5), 0.5);
  for (int i = 0; i < 100; ++i) {
    evidence.watch(3);
    if (i % 10 == 0) evidence.use(3);
  }
  EXPECT_NEAR(evidence.share(3, 0.5), 0.1, 0.03);
  EXPECT_DOUBLE_EQ(evidence.share(2, 0.5), 0.5);
}

TEST(UseEvidence, UsesNeverExceedWhatIsWatched) {
  UseEvidence evidence;
  evidence.use(1);
  EXPECT_EQ(evidence.count(1).used, 0u);
  for (uint32_t i = 0; i < 3 * UseCount::kWatchedMax; ++i) evidence.watch(1), evidence.use(1);
  EXPECT_LE(evidence.count(1).used, evidence.count(1).watched);
  EXPECT_LT(evidence.count(1).watched, UseCount::kWatchedMax);
  evidence.unwatch(1);
  EXPECT_LE(evidence.count(1).used, evidence.count(1).watched);
}

}  // namespace
}  // namespace outcore::prefetch
