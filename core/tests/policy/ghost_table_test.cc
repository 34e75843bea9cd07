#include "core/policy/ghost_table.h"

#include <gtest/gtest.h>

#include "core/tests/policy/simulated_pager.h"

namespace outcore::policy {
namespace {

class GhostTableTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ghosts.allocate(200'000).ok());
    ghosts.set_history(GetParam());
  }
  GhostTable ghosts;
};

TEST_P(GhostTableTest, RemembersNearlyAllOfTheLastKeysAndTakesEachOnce) {
  const uint64_t n = GetParam();
  for (uint64_t i = 0; i < 5 * n; ++i) ghosts.add(key_of_page(i));
  uint64_t found = 0, found_again = 0;
  for (uint64_t i = 4 * n; i < 5 * n; ++i) found += ghosts.remove(key_of_page(i));
  for (uint64_t i = 4 * n; i < 5 * n; ++i) found_again += ghosts.remove(key_of_page(i));
  EXPECT_GE(found, n - n / 50);
  EXPECT_LE(found_again, n / 1000);
  EXPECT_TRUE(ghosts.is_valid());
}

TEST_P(GhostTableTest, ForgetsWhatIsOlderThanItsHistory) {
  const uint64_t n = GetParam();
  for (uint64_t i = 0; i < 3 * n; ++i) ghosts.add(key_of_page(i));
  uint64_t found = 0;
  for (uint64_t i = 0; i < 2 * n - n / 1000; ++i) found += ghosts.remove(key_of_page(i));
  EXPECT_LE(found, n / 500 + 1);
}

TEST_P(GhostTableTest, HardlyEverRemembersWhatNeverWas) {
  for (uint64_t i = 0; i < 2 * GetParam(); ++i) ghosts.add(key_of_page(i));
  uint64_t found = 0;
  for (uint64_t i = 0; i < 100'000; ++i) found += ghosts.remove(key_of_page(1'000'000'000 + i));
  EXPECT_LE(found, 40u);
}

TEST_P(GhostTableTest, StaysValidThroughManyTurnsOfItsClock) {
  Dice dice(3);
  for (uint64_t turn = 0; turn < 20; ++turn) {
    for (uint64_t i = 0; i < 40'000; ++i)
      dice.below(4) == 0 ? void(ghosts.remove(key_of_page(dice.below(300'000))))
                         : ghosts.add(key_of_page(dice.below(300'000)));
    ASSERT_TRUE(ghosts.is_valid()) << turn;
  }
}

INSTANTIATE_TEST_SUITE_P(Histories, GhostTableTest,
                         testing::Values(1, 10, 1000, 32767, 32768, 200'000));

TEST(GhostTable, AnotherHistoryForgetsEverything) {
  GhostTable ghosts;
  ASSERT_TRUE(ghosts.allocate(100).ok());
  ghosts.set_history(100);
  ghosts.add(key_of_page(1));
  ghosts.set_history(50);
  EXPECT_FALSE(ghosts.remove(key_of_page(1)));
  ghosts.set_history(0);
  ghosts.add(key_of_page(1));
  EXPECT_FALSE(ghosts.remove(key_of_page(1)));
  EXPECT_TRUE(ghosts.is_valid());
}

}  // namespace
}  // namespace outcore::policy
