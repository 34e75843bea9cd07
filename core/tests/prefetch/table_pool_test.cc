// TablePool: which thread gets which table.
#include "core/prefetch/table_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/tests/prefetch/miss.h"

namespace outcore::prefetch {
namespace {

// Three neighbouring misses; returns how many pages are advised at the last.
uint32_t miss_thrice(StreamTable& table, uint64_t page) {
  for (int i = 0; i < 2; ++i)
    miss(table, 1, page + static_cast<uint64_t>(i), 64, 1000, false, false);
  return miss(table, 1, page + 2, 64, 1000, false, false).run_count;
}

TEST(TablePool, GivesAThreadItsOwnTableAgain) {
  TablePool pool;
  for (const uint64_t page : {10, 11}) {
    TablePool::Mine mine(pool, 7);
    ASSERT_TRUE(mine);
    EXPECT_EQ(miss(mine.table(), 1, page, 64, 1000, false, false).run_count, 0u);
  }
  {
    TablePool::Mine other(pool, 8);
    ASSERT_TRUE(other);
    EXPECT_EQ(miss(other.table(), 1, 12, 64, 1000, false, false).run_count, 0u);
  }
  TablePool::Mine mine(pool, 7);
  EXPECT_EQ(miss(mine.table(), 1, 12, 64, 1000, false, false).run_count, 1u);
}

TEST(TablePool, GivesNoTableTwice) {
  TablePool pool;
  TablePool::Mine mine(pool, 7);
  ASSERT_TRUE(mine);
  EXPECT_FALSE(TablePool::Mine(pool, 7));
}

TEST(TablePool, GivesTablesOfThreadsThatAreGoneToOthers) {
  TablePool pool;
  uint32_t found = 0;
  // Far more than there are slots.
  for (uint32_t thread = 1; thread <= 100'000; ++thread) {
    TablePool::Mine mine(pool, thread);
    found += mine ? 1 : 0;
  }
  EXPECT_GT(found, 10'000u);
  for (uint64_t i = 0; i < TablePool::kIdleMisses; ++i) TablePool::Mine mine(pool, 200'000);
  TablePool::Mine mine(pool, 300'000);
  ASSERT_TRUE(mine);
  EXPECT_EQ(miss_thrice(mine.table(), 10), 1u) << "it is as new";
}

TEST(TablePool, IsUsedByManyThreadsAtOnce) {
  TablePool pool;
  std::atomic<uint32_t> invalid{0};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (uint32_t i = 0; i < 20'000; ++i) {
        TablePool::Mine mine(pool, 1 + (i * 8 + t) % 3000);
        if (!mine) continue;
        miss(mine.table(), 1, i, 64, 1'000'000, false, false);
        invalid += mine.table().is_valid() ? 0 : 1;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(invalid, 0u);
}

}  // namespace
}  // namespace outcore::prefetch
