// ReaderCount: how many threads missed recently.
#include "core/prefetch/reader_count.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace outcore::prefetch {
namespace {

TEST(ReaderCount, CountsEachReaderOnce) {
  ReaderCount readers;
  uint64_t round[3] = {};
  for (int i = 0; i < 100; ++i) readers.note(&round[i % 3]);
  EXPECT_EQ(readers.note(&round[0]), 3u);
  EXPECT_EQ(readers.count(), 3u);
}

TEST(ReaderCount, ForgetsThoseWhoMissNothingForTwoRounds) {
  ReaderCount readers;
  uint64_t gone = 0, here = 0;
  readers.note(&gone);
  EXPECT_EQ(readers.note(&here), 2u);
  uint32_t count = 0;
  for (int i = 0; i < 256; ++i) count = readers.note(&here);
  EXPECT_EQ(count, 2u) << "the round before counts";
  for (int i = 0; i < 512; ++i) count = readers.note(&here);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(readers.count(), 1u);
}

TEST(ReaderCount, OneIsAloneFromItsFirstMissOnAndUntilAnotherMisses) {
  ReaderCount readers;
  EXPECT_FALSE(readers.is_one()) << "nobody has missed";
  uint64_t one = 0, other = 0;
  readers.note(&one);
  EXPECT_TRUE(readers.is_one());
  EXPECT_EQ(readers.misses(), 1u);
  readers.note(&other);
  EXPECT_FALSE(readers.is_one());
  for (int i = 0; i < 3 * 256; ++i) readers.note(&one);
  EXPECT_TRUE(readers.is_one());
}

TEST(ReaderCount, CountsThreadsThatMissAtTheSameTime) {
  ReaderCount readers;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      uint64_t round = 0;
      for (int n = 0; n < 10'000; ++n) EXPECT_GE(readers.note(&round), 1u);
    });
  for (std::thread& thread : threads) thread.join();
  uint64_t rounds[4] = {};
  uint32_t count = 0;
  for (int n = 0; n < 1024; ++n) count = readers.note(&rounds[n % 4]);
  EXPECT_EQ(count, 4u);
}

}  // namespace
}  // namespace outcore::prefetch
