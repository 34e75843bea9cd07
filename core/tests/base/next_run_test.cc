// What is said of the next run: of the same figures always the same.
#include "core/base/next_run.h"

#include <gtest/gtest.h>

namespace outcore::base {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// 16 MiB of budget for a file of 64 MiB, which was read twice.
PastRun run_that_read_again() {
  PastRun run;
  run.counters.fills = 2 * 16384;
  run.counters.faults = run.counters.fills;
  run.counters.read_bytes = 128 * kMiB;
  run.read_again_bytes = 64 * kMiB;
  run.files_bytes = 64 * kMiB;
  run.budget_bytes = 16 * kMiB;
  run.page_bytes = 4096;
  run.memory_bytes = 1024 * kMiB;
  return run;
}

TEST(NextRun, WhatWasReadAgainAsksForALargerBudget) {
  PastRun run = run_that_read_again();
  EXPECT_EQ(find_next_change(run).option + " " + find_next_change(run).value, "--budget 32M");
  run.better_budget_bytes = 20 * kMiB - 5;
  EXPECT_EQ(find_next_change(run).value, "20M") << "the curve knows better";
}

TEST(NextRun, PagesThatCameBackCountLikeBytesReadAgain) {
  PastRun run = run_that_read_again();
  run.read_again_bytes = 0;  // of a large file only a part was touched
  EXPECT_EQ(find_next_change(run).option, "");
  run.counters.refaults = run.counters.fills / 2;
  EXPECT_EQ(find_next_change(run).option, "--budget");
}

TEST(NextRun, NoBudgetIsNamedThatCannotBeHadOrHelps) {
  PastRun run = run_that_read_again();
  run.memory_bytes = 31 * kMiB;
  EXPECT_EQ(find_next_change(run).option, "");
  run = run_that_read_again();
  run.is_budget_adapting = true;
  EXPECT_EQ(find_next_change(run).option, "");
  run = run_that_read_again();
  run.budget_bytes = run.files_bytes;
  EXPECT_EQ(find_next_change(run).option, "");
}

TEST(NextRun, MessagesAskForLargerPagesInOrderOrForFaultsInTheThread) {
  PastRun run = run_that_read_again();
  run.read_again_bytes = 0;
  run.is_messages = true;
  EXPECT_EQ(find_next_change(run).option, "--delivery");
  run.is_messages_asked_for = true;
  EXPECT_EQ(find_next_change(run).option, "");
  run.budget_bytes = 64 * kMiB;
  run.counters.fills = 1000;
  EXPECT_EQ(find_next_change(run).option + " " + find_next_change(run).value, "--page 64k");
}

TEST(NextRun, TheOptionIsReplacedOrAddedAsTheLast) {
  const NextChange change{"--budget", "32M", ""};
  EXPECT_EQ(changed_command({"outcore run", "--budget 16M", "-q", "-- ./scan a"}, change),
            "outcore run --budget 32M -q -- ./scan a");
  EXPECT_EQ(changed_command({"outcore run", "-q", "-- ./scan a"}, change),
            "outcore run -q --budget 32M -- ./scan a");
  EXPECT_EQ(changed_command({}, change), "outcore run --budget 32M …");
}

}  // namespace
}  // namespace outcore::base
