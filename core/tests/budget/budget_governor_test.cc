// The governor driven step by step: what the machine has left the test says, the pager is real.
#include "core/runtime/budget_governor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/tests/cut/scene.h"
#include "core/tests/os_facts/fake_root.h"

namespace outcore::runtime {
namespace {

constexpr uint64_t kMebi = uint64_t{1} << 20;

class Governor : public testing::Test {
 protected:
  static constexpr uint64_t kBudget = 8 * kMebi, kSize = 6 * kMebi, kLimit = 256 * kMebi;

  void SetUp() override {
    if (!regions_.why_not().empty()) GTEST_SKIP() << regions_.why_not();
  }
  paging::Engine& engine() const { return regions_.engine(); }
  // Others leave so much to the budget, whatever it uses.
  void leave(uint64_t bytes) { left_ = bytes; }
  uint64_t step() {
    at_ns_ += BudgetGovernor::kPeriodNs;
    return governor_.step(at_ns_);
  }
  uint64_t count(metrics::Counter counter) const { return counters_.sum(counter); }
  // Each system page has its number.
  void write(uint64_t size_bytes = kSize) {
    std::byte* const bytes = regions_.data(0);
    for (uint64_t at = 0; at < size_bytes; at += 4096) std::memcpy(bytes + at, &at, sizeof at);
  }
  void expect_written(uint64_t size_bytes = kSize) {
    for (uint64_t at = 0; at < size_bytes; at += 4096) {
      uint64_t seen = 0;
      std::memcpy(&seen, regions_.data(0) + at, sizeof seen);
      ASSERT_EQ(seen, at);
    }
  }
  std::optional<BudgetGovernor::Reading> read() {
    if (is_blind_) return std::nullopt;
    const uint64_t all = budget::BudgetForecast::margin_of(kLimit) + left_;
    return BudgetGovernor::Reading{all - std::min(all, engine().used_bytes()), kLimit, pressure_};
  }

  // Frames that stay what they are: replacing them would evict what was written.
  scene::Regions regions_{{Delivery::kInThread, FrameKind::kShared, 4096}, kBudget, 1, kSize};
  std::atomic<uint64_t> left_{kBudget};
  bool is_blind_ = false;
  std::optional<os::MemoryPressure> pressure_;
  metrics::CounterBlock counters_;
  BudgetGovernor governor_{engine(), counters_, {kMebi, 64 * kMebi}, [this] { return read(); }};
  uint64_t at_ns_ = 0;
};

using metrics::Counter;

TEST_F(Governor, PagesLeaveBeforeAStepIsOverAndNoByteIsLost) {
  write();
  leave(2 * kMebi);
  EXPECT_EQ(step(), BudgetGovernor::kUrgentNs);
  EXPECT_EQ(engine().budget_bytes(), 2 * kMebi);
  EXPECT_LE(engine().used_bytes(), 2 * kMebi);
  EXPECT_EQ(count(Counter::budget_shrinks), 1u);
  EXPECT_EQ(count(Counter::budget_shrink_failures), 0u);
  EXPECT_GT(governor_.shrink_ns_max(), 0u);
  expect_written();
}

TEST_F(Governor, WhatOthersGiveBackIsTakenStepByStepUpToTheBound) {
  leave(200 * kMebi);
  uint64_t before = engine().budget_bytes();
  for (int i = 0; i < 60; ++i) {
    step();
    EXPECT_LE(engine().budget_bytes(), before + before / 8);
    before = engine().budget_bytes();
  }
  EXPECT_GT(before, 60 * kMebi);
  EXPECT_LE(before, 64 * kMebi);
  EXPECT_GE(count(Counter::budget_growths), 16u);
  EXPECT_EQ(count(Counter::budget_shrinks), 0u);
}

TEST_F(Governor, TheBudgetStaysWhereNothingCanBeRead) {
  leave(2 * kMebi);
  is_blind_ = true;
  EXPECT_EQ(step(), BudgetGovernor::kPeriodNs);
  EXPECT_EQ(engine().budget_bytes(), kBudget);
}

TEST_F(Governor, ItShrinksAsFarAsPinnedPagesLetIt) {
  write();
  const os::SignalBlock block;
  ASSERT_TRUE(engine().pin(*regions_.region(0).view, regions_.data(0), 4 * kMebi).ok());
  leave(2 * kMebi);
  step();
  EXPECT_GT(engine().budget_bytes(), 4 * kMebi);
  EXPECT_LT(engine().budget_bytes(), kBudget);
  EXPECT_EQ(engine().budget_bytes(), engine().least_budget_bytes());
  EXPECT_EQ(count(Counter::budget_shrinks), 1u);
  EXPECT_EQ(count(Counter::budget_shrink_failures), 0u);
  ASSERT_TRUE(engine().unpin(*regions_.region(0).view, regions_.data(0), 4 * kMebi).ok());
  step();
  EXPECT_EQ(engine().budget_bytes(), 2 * kMebi);
}

TEST_F(Governor, APinThatIsYetToBeRefusedHoldsItBackButMakesNothingGrow) {
  std::atomic<uint64_t>& pinning = engine().pager().pinning_bytes;
  pinning.fetch_add(40 * kMebi);  // as a pin counts before it looks whether that fits
  EXPECT_LE(engine().least_budget_bytes(), kBudget);
  step();
  EXPECT_EQ(engine().budget_bytes(), kBudget);
  leave(2 * kMebi);
  step();
  EXPECT_EQ(engine().budget_bytes(), kBudget);
  pinning.fetch_sub(40 * kMebi);
  step();
  EXPECT_EQ(engine().budget_bytes(), 2 * kMebi);
  EXPECT_EQ(count(Counter::budget_growths), 0u);
  EXPECT_EQ(count(Counter::budget_shrink_failures), 0u);
}

TEST_F(Governor, WhatCannotBeWrittenBackIsAFailureAndTriedAgainLessAndLessOften) {
  write();
  regions_.store(0).fail(true);
  leave(2 * kMebi);
  EXPECT_EQ(step(), BudgetGovernor::kPeriodNs) << "there is no hurry to fail again";
  EXPECT_EQ(count(Counter::budget_shrink_failures), 1u);
  step();
  EXPECT_GT(step(), BudgetGovernor::kPeriodNs);
  EXPECT_EQ(count(Counter::budget_shrink_failures), 3u);
  EXPECT_GE(engine().budget_bytes(), kSize) << "its pages are where they were";
  EXPECT_LE(engine().budget_bytes(), kBudget);
  expect_written();
  regions_.store(0).fail(false);
  step();
  EXPECT_EQ(engine().budget_bytes(), 2 * kMebi);
  EXPECT_GE(count(Counter::budget_shrinks), 1u);
  leave(kMebi + kMebi / 2);
  regions_.store(0).fail(true);
  EXPECT_LE(step(), BudgetGovernor::kPeriodNs) << "a success forgets what failed before";
  regions_.store(0).fail(false);
  expect_written();
}

TEST_F(Governor, WhatIsNotReachedKeepsWhatHasLeft) {
  write();
  regions_.store(0).fail(true);
  const uint64_t used = engine().used_bytes();
  ASSERT_LE(used, kBudget);
  EXPECT_EQ(engine().approach_budget(2 * kMebi, 1'000'000).code(), EBUSY);
  EXPECT_LE(engine().budget_bytes(), used + engine().pager().pin_reserve_bytes());
  EXPECT_GE(engine().budget_bytes(), engine().used_bytes());
  const uint64_t before = engine().budget_bytes();
  regions_.store(0).fail(false);
  EXPECT_EQ(engine().approach_budget(2 * kMebi, 0).code(), EBUSY) << "no time at all";
  EXPECT_LE(engine().budget_bytes(), before);
  expect_written();
}

TEST_F(Governor, PressureAloneShrinksIt) {
  leave(10 * kMebi);
  pressure_ = os::MemoryPressure{50, 20, 1'000'000};
  at_ns_ = 10'000'000'000;
  step();
  EXPECT_EQ(engine().budget_bytes(), kBudget) << "stalls may be over";
  pressure_->stalled_us += 50'000;
  step();
  EXPECT_EQ(engine().budget_bytes(), 7 * kMebi);
}

TEST_F(Governor, WhatTheProgramSaysEndsIt) {
  EXPECT_EQ(governor_.fix(4096).code(), EINVAL);
  leave(6 * kMebi);
  step();
  EXPECT_EQ(engine().budget_bytes(), 6 * kMebi) << "what was refused ends nothing";
  ASSERT_TRUE(governor_.fix(4 * kMebi).ok());
  leave(2 * kMebi);
  EXPECT_EQ(step(), 0u);
  EXPECT_EQ(engine().budget_bytes(), 4 * kMebi);
}

TEST_F(Governor, WhatTheProgramSaysCountsInTheMiddleOfAShrink) {
  write();
  leave(2 * kMebi);
  ASSERT_TRUE(governor_.start().ok());
  EXPECT_TRUE(governor_.fix(4 * kMebi).ok());
  EXPECT_EQ(engine().budget_bytes(), 4 * kMebi);
  governor_.end();
  EXPECT_EQ(step(), 0u);
  EXPECT_EQ(engine().budget_bytes(), 4 * kMebi);
  expect_written();
}

TEST_F(Governor, ItsThreadFollowsUntilItsEnd) {
  write();
  leave(2 * kMebi);
  ASSERT_TRUE(governor_.start().ok());
  while (engine().budget_bytes() != 2 * kMebi) std::this_thread::yield();
  governor_.end();
  leave(100 * kMebi);
  EXPECT_EQ(engine().budget_bytes(), 2 * kMebi);
  expect_written();
}

TEST_F(Governor, WhileItResizesOthersReadOn) {
  write();
  ASSERT_TRUE(governor_.start().ok());
  std::atomic<bool> is_over{false};
  std::thread reader([&] {
    while (!is_over.load()) expect_written();
  });
  for (int i = 0; i < 3; ++i) {
    const uint64_t shrinks = count(Counter::budget_shrinks);
    leave(2 * kMebi);
    while (count(Counter::budget_shrinks) == shrinks) std::this_thread::yield();
    const uint64_t growths = count(Counter::budget_growths);
    leave(200 * kMebi);
    while (count(Counter::budget_growths) == growths) std::this_thread::yield();
  }
  is_over = true;
  reader.join();
  governor_.end();
  expect_written();
}

TEST(GovernorOfARuntime, LeavesRoomForTheUsualPagesWhateverTheBoundIs) {
  constexpr uint64_t kPage = kMebi;
  RuntimeOptions options = scene::options_with(256 * kMebi);
  options.adapts_budget = true;
  options.page_bytes = kPage;
  options.budget_min_bytes = kMebi;
  options.budget_max_bytes = 512 * kMebi;
  const auto runtime = Runtime::Impl::start(options);
  ASSERT_TRUE(runtime.ok()) << runtime.message();
  const Runtime::Impl& impl = *runtime.value();
  const uint64_t least = impl.engine->pager().least_budget(kPage);
  ASSERT_GT(least, kMebi);
  EXPECT_GE(impl.governor->options().min_bytes, least);
  EXPECT_LE(impl.governor->options().min_bytes, impl.governor->options().max_bytes);
}

TEST(MachineMeter, ReadsThisMachine) {
  Result<BudgetGovernor::Meter> meter = BudgetGovernor::machine_meter();
  ASSERT_TRUE(meter.ok()) << meter.message();
  const auto reading = meter.value()();
  ASSERT_TRUE(reading.has_value());
  EXPECT_GT(reading->available_bytes, 0u);
  EXPECT_GE(reading->limit_bytes, reading->available_bytes);
}

TEST(MachineMeter, WhereNothingCanBeReadThereIsNone) {
  os::FakeRoot root;
  const Result<BudgetGovernor::Meter> none = BudgetGovernor::machine_meter(root.path());
  EXPECT_EQ(none.code(), ENOTSUP);
  EXPECT_NE(none.message().find("give the budget a size"), std::string::npos) << none.message();
  root.machine(100).file("/proc/self/cgroup", "0::/\n").file("/proc/self/mountinfo", "");
  Result<BudgetGovernor::Meter> meter = BudgetGovernor::machine_meter(root.path());
  ASSERT_TRUE(meter.ok()) << meter.message();
  ASSERT_TRUE(meter.value()().has_value());
  EXPECT_EQ(meter.value()()->available_bytes, 100 * kMebi);
  root.file("/proc/meminfo", "");
  EXPECT_FALSE(meter.value()().has_value()) << "the budget stays";
}

TEST(MachineMeter, KeepsNoDescriptorAfterItsEnd) {
  const uint64_t before = scene::count_descriptors();
  {
    Result<BudgetGovernor::Meter> meter = BudgetGovernor::machine_meter();
    EXPECT_GT(scene::count_descriptors(), before);
  }
  EXPECT_EQ(scene::count_descriptors(), before);
}

}  // namespace
}  // namespace outcore::runtime
