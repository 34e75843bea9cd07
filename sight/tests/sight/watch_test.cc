// What a Watch makes of samples: rates, and that nothing is ever less than nothing.
#include "sight/commands/watch.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace outcore::cli {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kEpoch = 1'700'000'000 * kSecond;

RegionMetrics store(const std::string& uri, uint64_t fills) {
  RegionMetrics m;
  m.uri = uri;
  m.page_bytes = 4096;
  m.counters.fills = m.counters.faults = fills;
  m.counters.read_bytes = fills * 4096;
  m.counters.fault_ns = fills * 1000;
  m.fault_latency.count[10] = fills;
  return m;
}

// A process with one runtime, whose counters are those of its stores and of `ended`.
Sample::Process process(pid_t pid, const std::vector<RegionMetrics>& stores, uint64_t ended = 0) {
  Sample::Process p;
  p.pid = pid;
  p.facts.started = 77;
  PublishedRuntime runtime;
  runtime.process = pid;
  runtime.started_ns = kEpoch - 100 * kSecond;
  Metrics& m = runtime.metrics;
  m.counters.fills = ended;
  for (const RegionMetrics& one : stores) {
    m.counters += one.counters;
    m.fault_latency += one.fault_latency;
  }
  m.regions = stores;
  p.runtimes.push_back(runtime);
  return p;
}

Sample sample(double seconds, std::vector<Sample::Process> processes) {
  Sample s;
  s.since_boot_ns = 1000 * kSecond + static_cast<uint64_t>(seconds * 1e9);
  s.since_1970_ns = kEpoch + static_cast<uint64_t>(seconds * 1e9);
  s.processes = std::move(processes);
  return s;
}

TEST(Watch, CallsThatWaitForPagesStallAsFaultsDo) {
  Watch watch;
  const auto look = [&](double seconds, uint64_t fills, uint64_t faults, uint64_t calls) {
    RegionMetrics one = store("/a", 0);
    one.counters.fills = fills;
    one.counters.faults = faults;
    one.counters.fault_ns = faults * 1'000'000;
    one.counters.call_waits = calls;
    one.counters.call_wait_ns = calls * 1'000'000;
    watch.take(sample(seconds, {process(1, {one})}));
    return watch.processes()[0].change;
  };
  static_cast<void>(look(0, 100, 0, 0));
  EXPECT_NEAR(look(1, 400, 0, 300).stalled(), 0.3, 1e-9);
  EXPECT_NEAR(look(2, 1000, 200, 700).stalled(), 0.6, 1e-9);
  EXPECT_TRUE(look(3, 1000, 200, 700).is_stall_known()) << "nothing came in";
  EXPECT_FALSE(look(4, 1010, 200, 700).is_stall_known()) << "who waits for it waits still";
}

TEST(Watch, KnowsNothingAtTheFirstLook) {
  Watch watch;
  watch.take(sample(0, {process(1, {store("/a", 1000)})}));
  ASSERT_EQ(watch.processes().size(), 1u);
  EXPECT_FALSE(watch.processes()[0].change.is_known());
  EXPECT_EQ(watch.processes()[0].change.a_second(1000), 0);
  EXPECT_LT(watch.processes()[0].cpu_share, 0);
  EXPECT_TRUE(watch.processes()[0].stalled.empty());
}

TEST(Watch, RatesAreOfTheIntervalAlone) {
  Watch watch;
  Sample::Process before = process(1, {store("/a", 1000), store("/b", 10)});
  Sample::Process after = process(1, {store("/a", 1500), store("/b", 10)});
  after.runtimes[0].metrics.counters.refaults = 100;
  after.facts.cpu_seconds = before.facts.cpu_seconds + 3;
  watch.take(sample(0, {before}));
  watch.take(sample(2, {after}));
  const ProcessView& seen = watch.processes()[0];
  EXPECT_EQ(seen.change.a_second(seen.change.filled()), 250);
  EXPECT_DOUBLE_EQ(seen.change.stalled(), 500e3 / 2e9);
  EXPECT_DOUBLE_EQ(seen.change.refault_share(), 0.2);
  EXPECT_DOUBLE_EQ(seen.cpu_share, 1.5);
  EXPECT_EQ(seen.change.latency.count[10], 500u);
  EXPECT_EQ(seen.change.latency.percentile_ns(0.5), 2047u);
  ASSERT_EQ(seen.runtimes[0].stores.size(), 2u);
  EXPECT_EQ(seen.runtimes[0].stores[0].change.counters.fills, 500u);
  EXPECT_EQ(seen.runtimes[0].stores[1].change.counters.fills, 0u);
  EXPECT_EQ(seen.stalled.size(), 1u);
}

TEST(Watch, AStoreThatIsMappedAgainCountsFromZero) {
  Watch watch;
  watch.take(sample(0, {process(1, {store("/a", 1000)})}));
  watch.take(sample(1, {process(1, {store("/a", 30)}, 1000)}));
  const ProcessView& seen = watch.processes()[0];
  EXPECT_EQ(seen.runtimes[0].stores[0].change.counters.fills, 30u);
  EXPECT_EQ(seen.change.counters.fills, 30u);
}

TEST(Watch, WhatIsMissingForAMomentIsNotCountedTwice) {
  Watch watch;
  watch.take(sample(0, {process(1, {store("/a", 1000)})}));
  // It ended while it was read: it is neither among the stores nor among those that ended.
  watch.take(sample(1, {process(1, {})}));
  EXPECT_EQ(watch.processes()[0].change.counters.fills, 0u);
  EXPECT_TRUE(watch.processes()[0].change.is_known());
  watch.take(sample(2, {process(1, {}, 1007)}));
  EXPECT_EQ(watch.processes()[0].change.counters.fills, 7u);
}

TEST(Watch, TwoStoresOfOneNameAreToldApart) {
  Watch watch;
  watch.take(sample(0, {process(1, {store("/a", 1000), store("/a", 5)})}));
  watch.take(sample(1, {process(1, {store("/a", 1001), store("/a", 7)})}));
  const auto& stores = watch.processes()[0].runtimes[0].stores;
  EXPECT_EQ(stores[0].change.counters.fills, 1u);
  EXPECT_EQ(stores[1].change.counters.fills, 2u);
  EXPECT_EQ(stores[1].occurrence, 1u);
}

TEST(Watch, AnotherProcessWithTheSameNumberIsNew) {
  Watch watch;
  watch.take(sample(0, {process(1, {store("/a", 1000)})}));
  Sample::Process other = process(1, {store("/a", 2000)});
  other.facts.started = 99;
  other.runtimes[0].started_ns = kEpoch + kSecond / 2;
  watch.take(sample(1, {other}));
  EXPECT_LT(watch.processes()[0].cpu_share, 0);
  EXPECT_EQ(watch.processes()[0].change.counters.fills, 2000u);  // all since it started
}

TEST(Watch, OneThatIsSeenLateHasNoRatesYet) {
  Watch watch;
  watch.take(sample(0, {}));
  watch.take(sample(1, {process(1, {store("/a", 1000)})}));  // it started 100 s before
  EXPECT_FALSE(watch.processes()[0].change.is_known());
  EXPECT_FALSE(watch.processes()[0].runtimes[0].stores[0].change.is_known());
}

TEST(Watch, NoTimeBetweenTwoLooksGivesNoRates) {
  Watch watch;
  watch.take(sample(1, {process(1, {store("/a", 1000)})}));
  watch.take(sample(1, {process(1, {store("/a", 2000)})}));
  EXPECT_FALSE(watch.processes()[0].change.is_known());
  EXPECT_EQ(watch.processes()[0].change.stalled(), 0);
  watch.take(sample(0.5, {process(1, {store("/a", 2000)})}));  // a clock that went back
  EXPECT_FALSE(watch.processes()[0].change.is_known());
}

TEST(Watch, AProcessThatGoesIsForgotten) {
  Watch watch;
  watch.take(sample(0, {process(1, {store("/a", 1000)}), process(2, {})}));
  watch.take(sample(1, {process(2, {})}));
  EXPECT_EQ(watch.find(1), nullptr);
  ASSERT_NE(watch.find(2), nullptr);
}

TEST(Watch, KeepsSixtyOfTheLastLooks) {
  Watch watch;
  for (int i = 0; i < 100; ++i)
    watch.take(sample(i, {process(1, {store("/a", static_cast<uint64_t>(i) * 1'000'000)})}));
  EXPECT_EQ(watch.processes()[0].stalled.size(), kHistoryMax);
  EXPECT_DOUBLE_EQ(watch.processes()[0].stalled.back(), 1.0);
}

TEST(Watch, EachStoreHasItsOwnHistory) {
  Watch watch;
  watch.take(sample(0, {process(1, {store("/a", 0), store("/b", 0)})}));
  watch.take(sample(1, {process(1, {store("/a", 500'000), store("/b", 0)})}));
  watch.take(sample(2, {process(1, {store("/a", 500'000), store("/b", 250'000)})}));
  const std::vector<StoreView>& seen = watch.processes()[0].runtimes[0].stores;
  EXPECT_EQ(seen[0].stalled, (std::deque<double>{0.5, 0}));
  EXPECT_EQ(seen[1].stalled, (std::deque<double>{0, 0.25}));
  watch.take(sample(3, {process(1, {store("/a", 10), store("/b", 250'000)})}));
  EXPECT_EQ(watch.processes()[0].runtimes[0].stores[0].stalled.size(), 1u) << "another of its name";
}

TEST(Watch, BuffersWhoseMembersLeaveHaveNoNegativeRates) {
  Watch watch;
  BufferFacts buffer;
  buffer.name = "b";
  buffer.filled_pages = 1000;
  Sample first = sample(0, {}), second = sample(1, {}), third = sample(2, {});
  first.buffers = {buffer};
  buffer.filled_pages = 1500;
  second.buffers = {buffer};
  buffer.filled_pages = 3;
  third.buffers = {buffer};
  watch.take(first);
  watch.take(second);
  EXPECT_EQ(watch.buffers()[0].fills_a_second, 500);
  watch.take(third);
  EXPECT_EQ(watch.buffers()[0].fills_a_second, 0);
}

TEST(Watch, TheLimitOfABufferIsTheBudgetOfWhoseItsPagesAre) {
  BufferFacts buffer;
  buffer.name = "samples";
  buffer.limit_bytes = 50 << 20;
  buffer.used_bytes = 49 << 20;
  Sample now = sample(0, {process(1, {store("/a", 1000)}), process(2, {store("/b", 1000)})});
  for (Sample::Process& one : now.processes) {
    one.runtimes[0].shared_buffer = "samples";
    one.runtimes[0].metrics.gauges.budget_bytes = 25 << 20;
    one.runtimes[0].metrics.gauges.used_bytes = 1 << 20;
  }
  now.processes[0].runtimes[0].metrics.regions[0].frames = "buffer";
  now.processes[1].runtimes[0].metrics.regions[0].frames = "private";
  now.buffers = {buffer};
  for (const std::vector<pid_t>& only : {std::vector<pid_t>(), std::vector<pid_t>{1, 2}}) {
    Watch watch(only);
    watch.take(now);
    EXPECT_EQ(watch.processes()[0].budget_bytes, buffer.limit_bytes);
    EXPECT_EQ(watch.processes()[0].used_bytes, buffer.used_bytes);
    EXPECT_EQ(watch.processes()[0].runtimes[0].buffer, "samples");
    EXPECT_EQ(watch.processes()[1].budget_bytes, 25u << 20);
    EXPECT_EQ(watch.processes()[1].used_bytes, 1u << 20);
    EXPECT_EQ(watch.buffers().size(), only.empty() ? 1u : 0u);
  }
}

TEST(Amplification, CountsNoMoreThanTheStoreHas) {
  RegionMetrics m = store("/a", 300);
  m.size_bytes = 99 * 4096 + 1;
  EXPECT_EQ(distinct_bytes_of(m), 100u * 4096);
  Amplification amplification;
  amplification.add(m);
  EXPECT_DOUBLE_EQ(*amplification.value(), 3);
}

TEST(Amplification, IsOfThePagesThatCameInEachCountedOnce) {
  RegionMetrics m = store("/a", 300);
  m.counters.refaults = 200;
  Amplification amplification;
  EXPECT_FALSE(amplification.value());
  amplification.add(m);
  EXPECT_DOUBLE_EQ(*amplification.value(), 3);
  m.counters.refaults = 400;  // counted a moment later than the fills
  Amplification none;
  none.add(m);
  EXPECT_FALSE(none.value());
}

}  // namespace
}  // namespace outcore::cli
