#include "core/paging/touch_runs.h"

#include <gtest/gtest.h>

namespace outcore::paging {
namespace {

uint64_t length(const TouchRuns::Run& run) { return run.end - run.first; }

TEST(TouchRuns, DoubleWhileTheyGoUp) {
  TouchRuns runs;
  uint64_t page = 100;
  for (const uint64_t expected : {1, 2, 4, 8, 16, 16, 16}) {
    const TouchRuns::Run run = runs.next(page);
    EXPECT_EQ(run.first, page);
    EXPECT_EQ(length(run), expected);
    page = run.end;
  }
}

TEST(TouchRuns, DoubleWhileTheyGoDownAndEndAtTheFirstPage) {
  TouchRuns runs;
  uint64_t page = 40;
  for (const uint64_t expected : {1, 2, 4, 8, 16}) {
    const TouchRuns::Run run = runs.next(page);
    EXPECT_EQ(run.end, page + 1);
    EXPECT_EQ(length(run), expected);
    page = run.first - 1;
  }
  const TouchRuns::Run last = runs.next(page);  // 9: less than 16 are left
  EXPECT_EQ(page, 9u);
  EXPECT_EQ(last.first, 0u);
  EXPECT_EQ(last.end, 10u);
}

TEST(TouchRuns, AreOnePageWhereTouchesLieApart) {
  TouchRuns runs;
  for (uint64_t page = 0; page < 1000; page += 10) {
    const TouchRuns::Run run = runs.next(page);
    EXPECT_EQ(run.first, page);
    EXPECT_EQ(run.end, page + 1);
  }
}

TEST(TouchRuns, AreFollowedSideBySide) {
  TouchRuns runs;
  uint64_t up = 1000, down = 5000;
  for (const uint64_t expected : {1, 2, 4, 8, 16}) {
    const TouchRuns::Run rising = runs.next(up), falling = runs.next(down);
    EXPECT_EQ(length(rising), expected);
    EXPECT_EQ(length(falling), expected);
    up = rising.end;
    down = falling.first - 1;
  }
}

}  // namespace
}  // namespace outcore::paging
