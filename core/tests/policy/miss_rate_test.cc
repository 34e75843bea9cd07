// Miss rates in simulation, with the engine's batches: see docs/internals, "seeing hits".
#include <gtest/gtest.h>

#include <functional>

#include "core/tests/policy/simulated_pager.h"
#include "tests/share.h"

namespace outcore::policy {
namespace {

constexpr uint64_t kPages = 1 << 16, kFrames = kPages / 4;
constexpr uint64_t kTouches = 3'000'000;

using Workload = std::function<uint64_t(uint64_t, Dice&)>;

// The misses of the last two thirds of kTouches touches, in percent.
double misses_of(const std::string& policy, const Workload& next_page,
                 size_t batch = SimulatedPager::kBatch) {
  SimulatedPager pager(policy, kFrames, kPages, batch);
  Dice dice(1);
  for (uint64_t i = 0; i < kTouches; ++i) {
    if (i == kTouches / 3) pager.forget_counts();
    pager.touch(next_page(i, dice));
  }
  EXPECT_TRUE(pager.policy().is_valid());
  return pager.miss_percent();
}

Workload zipf() {
  return [zipf = Zipf(kPages, .99)](uint64_t, Dice& dice) { return zipf.next(dice); };
}
Workload zipf_and_scan() {
  return [zipf = Zipf(kPages, .99)](uint64_t i, Dice& dice) {
    return i % 4 == 3 ? i / 4 % kPages : zipf.next(dice);
  };
}
Workload loop() {
  return [](uint64_t i, Dice&) { return i % (kFrames * 12 / 10); };
}
Workload uniform() {
  return [](uint64_t, Dice& dice) { return dice.below(kPages); };
}

TEST(MissRate, ALoopLargerThanMemoryMissesAlwaysUnderFifo) {
  EXPECT_GT(misses_of("fifo", loop()), 99);
}

TEST(MissRate, ALoopLargerThanMemoryMissesAFifthUnderS3Fifo) {
  EXPECT_LE(misses_of("s3-fifo", loop()), 24);
}

// A program that has filled memory with one part of its data, and goes on to another.
Workload then_loop(uint64_t percent) {
  return [percent](uint64_t i, Dice&) {
    return i < 2 * kFrames ? 2 * kFrames + i : i % (kFrames * percent / 100);
  };
}

TEST(MissRate, OtherDataThatFitIsNotMissedForEver) {
  for (const uint64_t percent : scene::share_of({20, 50, 80, 95}))
    EXPECT_LE(misses_of("s3-fifo", then_loop(percent)), 1) << percent;
  EXPECT_LE(misses_of("s3-fifo", then_loop(110)), 30) << "of a loop, the more it exceeds memory";
  EXPECT_GT(misses_of("s3-fifo:ghosts=0%", then_loop(50)), 99) << "nothing is remembered";
}

TEST(MissRate, WhatALoopKeepsInMemoryIsNotRenewed) {
  for (const uint64_t percent : scene::share_of({150, 200, 300})) {
    const auto touches = [percent](uint64_t i, Dice&) { return i % (kFrames * percent / 100); };
    EXPECT_LE(misses_of("s3-fifo", touches), 100 - 9'000.0 / static_cast<double>(percent) + 5)
        << percent << ": a page more in memory is a miss less a turn";
  }
}

// Passes forward and backward: what returns at a turn returns soon, what is in memory late.
TEST(MissRate, PassesToAndFroAreRenewedSeldom) {
  for (const uint64_t percent : {200, 250}) {
    const uint64_t pages = kFrames * percent / 100;
    const auto touches = [pages](uint64_t i, Dice&) {
      return i / pages % 2 == 0 ? i % pages : pages - 1 - i % pages;
    };
    EXPECT_LE(misses_of("s3-fifo", touches), percent == 200 ? 59 : 68) << percent;
  }
}

TEST(MissRate, S3FifoNeedsNoParticularBatch) {
  for (const size_t batch : scene::share_of({1, 16, 64, 512}))
    EXPECT_LE(misses_of("s3-fifo", loop(), batch), 26) << batch;
}

TEST(MissRate, S3FifoKeepsItsLoopWhileItSamplesRecency) {
  EXPECT_LE(misses_of("s3-fifo:cool=5%", loop()), 37);
}

TEST(MissRate, S3FifoBeatsFifoOnSkewedTouches) {
  const double fifo = misses_of("fifo", zipf()), s3 = misses_of("s3-fifo", zipf());
  EXPECT_LE(s3, 16);
  EXPECT_LT(s3, fifo);
}

TEST(MissRate, RescuesTellS3FifoWhatIsHot) {
  const std::string paper = "s3-fifo:small=10%,ghosts=100%";
  EXPECT_LT(misses_of(paper + ",cool=5%", zipf()), misses_of(paper, zipf()) - 0.5);
}

TEST(MissRate, AShortMemoryOfGhostsBeatsALongOne) {
  const std::string long_memory = "s3-fifo:ghosts=100%";
  EXPECT_LT(misses_of("s3-fifo", zipf()), misses_of(long_memory, zipf()) - 1);
  EXPECT_LT(misses_of("s3-fifo", zipf_and_scan()), misses_of(long_memory, zipf_and_scan()) - 2);
  EXPECT_LT(misses_of("s3-fifo", loop()), misses_of(long_memory, loop()) - 5);
}

TEST(MissRate, AScanHurtsS3FifoLessThanFifo) {
  EXPECT_LT(misses_of("s3-fifo", zipf_and_scan()), misses_of("fifo", zipf_and_scan()) - 2);
}

TEST(MissRate, DiMmapsEvictionQueueFindsTheHotPages) {
  EXPECT_LT(misses_of("di-mmap", zipf()), misses_of("fifo", zipf()) - 1);
}

TEST(MissRate, CoolingGivesFifoASecondChance) {
  EXPECT_LT(misses_of("fifo:cool=10%", zipf()), misses_of("fifo", zipf()) - 1);
}

TEST(MissRate, UniformTouchesMissAlikeUnderEveryPolicy) {
  for (const char* policy : scene::share_of({"s3-fifo", "fifo", "s3-fifo:cool=5%", "di-mmap"})) {
    const double misses = misses_of(policy, uniform());
    EXPECT_GE(misses, 74) << policy;
    EXPECT_LE(misses, 77) << policy;
  }
}

}  // namespace
}  // namespace outcore::policy
