// A runtime whose budget follows what this machine has left, from its start to its end.
#include <gmock/gmock.h>

#include <iterator>
#include <thread>

#include "core/tests/conformance/scene.h"
#include "outcore/runtime.h"

namespace outcore {
namespace {

using namespace scene;

RuntimeOptions auto_budget() {
  RuntimeOptions options = options_with(8 * kMiB);
  options.adapts_budget = true;
  options.budget_min_bytes = 4 * kMiB;
  options.budget_max_bytes = 16 * kMiB;
  return options;
}

TEST(AutoBudget, BeginsWhereItIsToldAndStaysWithinItsBounds) {
  Runtime runtime = Runtime::start(auto_budget()).value();
  EXPECT_THAT(runtime.describe_options(), testing::StartsWith("budget = auto (the program)\n"));
  EXPECT_GE(runtime.budget_bytes(), 4 * kMiB);
  EXPECT_LE(runtime.budget_bytes(), 16 * kMiB);
  const Metrics metrics = runtime.metrics();
  EXPECT_GE(metrics.gauges.budget_bytes, 4 * kMiB);
  EXPECT_LE(metrics.gauges.budget_bytes, 16 * kMiB);
}

TEST(AutoBudget, MovesWithWhatThisMachineHasLeft) {
  RuntimeOptions options = auto_budget();
  options.budget_bytes = 8 * kMiB;
  Runtime runtime = Runtime::start(options).value();
  // Up, or down on a machine that has nothing left.
  while (runtime.budget_bytes() == 8 * kMiB) std::this_thread::yield();
  const Metrics metrics = runtime.metrics();
  EXPECT_GE(metrics.counters.budget_growths + metrics.counters.budget_shrinks, 1u);
}

TEST(AutoBudget, IsWhatTheProgramSaysFromThenOn) {
  Runtime runtime = Runtime::start(auto_budget()).value();
  ASSERT_TRUE(runtime.resize_budget(5 * kMiB).ok());
  const Counters before = runtime.metrics().counters;
  EXPECT_EQ(runtime.budget_bytes(), 5 * kMiB);
  ASSERT_TRUE(runtime.resize_budget(20 * kMiB).ok()) << "beyond its bounds, too";
  EXPECT_EQ(runtime.budget_bytes(), 20 * kMiB);
  EXPECT_EQ(runtime.metrics().counters.budget_growths, before.budget_growths);
}

TEST(AutoBudget, LeavesNoDescriptorBehind) {
  { const Runtime first = Runtime::start(auto_budget()).value(); }
  const uint64_t before = count_descriptors();
  for (int i = 0; i < 5; ++i) {
    const Runtime runtime = Runtime::start(auto_budget()).value();
    EXPECT_GT(count_descriptors(), before);
  }
  EXPECT_EQ(count_descriptors(), before);
}

TEST(AutoBudget, AForkedChildHasNeitherItsThreadNorItsDescriptors) {
  OUTCORE_NEEDS_FORK();
  { const Runtime first = Runtime::start(auto_budget()).value(); }
  const uint64_t without = count_descriptors();
  {
    Runtime runtime = Runtime::start(auto_budget()).value();
    ASSERT_GT(count_descriptors(), without);
    const Ending ending = in_child([&] {
      require(count_descriptors() == without, "no descriptor of the parent's");
      require(std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                            std::filesystem::directory_iterator()) == 1,
              "one thread");
      require(runtime.resize_budget(5 * kMiB).code() == EPERM, "it is the parent's");
      const Runtime gone = std::move(runtime);
      return 0;
    });
    EXPECT_TRUE(ending.has_exited(0)) << ending;
    EXPECT_TRUE(runtime.resize_budget(5 * kMiB).ok()) << "the parent's goes on";
  }
  EXPECT_EQ(count_descriptors(), without);
}

TEST(AutoBudget, AForkedChildStartsOneOfItsOwn) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const Runtime runtime = Runtime::start(auto_budget()).value();
  const Ending ending = in_child([&] {
    Runtime own = Runtime::start(auto_budget()).value();
    require(own.budget_bytes() >= 4 * kMiB, "within its bounds");
    return 0;
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
}

}  // namespace
}  // namespace outcore
