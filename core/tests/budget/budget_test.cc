#include "core/budget/budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace outcore::budget {
namespace {

TEST(Budget, GivesNoMoreThanItsLimit) {
  Budget budget(100);
  EXPECT_TRUE(budget.try_acquire(60));
  EXPECT_FALSE(budget.try_acquire(41));
  EXPECT_TRUE(budget.try_acquire(40));
  EXPECT_FALSE(budget.try_acquire(1));
  budget.release(60);
  EXPECT_EQ(budget.used(), 40u);
  EXPECT_EQ(budget.used_max(), 100u);
}

TEST(Budget, ASmallerLimitRefusesUntilEnoughIsGiven) {
  Budget budget(100);
  ASSERT_TRUE(budget.try_acquire(80));
  budget.set_limit(50);
  EXPECT_FALSE(budget.try_acquire(1));
  budget.release(40);
  EXPECT_TRUE(budget.try_acquire(10));
  EXPECT_FALSE(budget.try_acquire(1));
}

TEST(Budget, HoldsItsLimitAtEveryInstant) {
  Budget budget(1000);
  std::atomic<uint64_t> over = 0;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 20'000; ++i) {
        const uint64_t bytes = 100 + (i + t) % 200;
        if (!budget.try_acquire(bytes)) continue;
        over += budget.used() > 1000;
        budget.release(bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(over, 0u);
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_LE(budget.used_max(), 1000u);
}

TEST(Budget, AWaiterWakesWhenSomethingIsGiven) {
  Budget budget(10);
  ASSERT_TRUE(budget.try_acquire(10));
  std::thread waiter([&] {
    for (;;) {
      const uint32_t seen = budget.changes();
      if (budget.try_acquire(10)) return;
      budget.wait_for_change(seen, uint64_t{3600} * 1'000'000'000);
    }
  });
  budget.release(10);
  waiter.join();
  EXPECT_EQ(budget.used(), 10u);
}

TEST(BudgetDeathTest, GivingMoreThanWasTakenIsABug) {
  Budget budget(10);
  ASSERT_TRUE(budget.try_acquire(5));
  EXPECT_DEATH(budget.release(6), "before >= bytes");
}

}  // namespace
}  // namespace outcore::budget
