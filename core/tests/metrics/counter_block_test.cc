#include "core/metrics/counter_block.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace outcore::metrics {
namespace {

TEST(CounterBlock, StartsAtZero) {
  const CounterBlock block;
  EXPECT_EQ(block.sum().faults, 0u);
  EXPECT_EQ(block.fault_latency().percentile_ns(1), 0u);
}

TEST(CounterBlock, EachCounterHasItsOwnPlace) {
  CounterBlock block;
  uint64_t n = 0;
#define OUTCORE_ADD(name, unit, help) block.add(Counter::name, ++n);
  OUTCORE_COUNTERS(OUTCORE_ADD)
#undef OUTCORE_ADD
  EXPECT_EQ(n, kCounterCount);
  const Counters sums = block.sum();
  n = 0;
#define OUTCORE_EXPECT(name, unit, help) EXPECT_EQ(sums.name, ++n) << #name;
  OUTCORE_COUNTERS(OUTCORE_EXPECT)
#undef OUTCORE_EXPECT
  EXPECT_EQ(block.sum(Counter::fills), sums.fills);
}

TEST(CounterBlock, AddsAllThatAnotherHasCounted) {
  CounterBlock block, other;
  uint64_t n = 0;
#define OUTCORE_ADD(name, unit, help) \
  block.add(Counter::name, 1);        \
  other.add(Counter::name, 10 * ++n);
  OUTCORE_COUNTERS(OUTCORE_ADD)
#undef OUTCORE_ADD
  block.fault_took(5);
  other.fault_took(5);
  other.fault_took(5'000'000);
  block.add_all_of(other);
  const Counters sums = block.sum();
  n = 0;
  const uint64_t in_latency_ns = 5 + 5 + 5'000'000;
#define OUTCORE_EXPECT(name, unit, help)                                                      \
  ++n;                                                                                        \
  EXPECT_EQ(sums.name, 10 * n + 1 + (Counter::name == Counter::fault_ns ? in_latency_ns : 0)) \
      << #name;
  OUTCORE_COUNTERS(OUTCORE_EXPECT)
#undef OUTCORE_EXPECT
  EXPECT_EQ(block.fault_latency().count[CounterBlock::latency_bucket(5)], 2u);
  EXPECT_EQ(block.fault_latency().count[CounterBlock::latency_bucket(5'000'000)], 1u);
  EXPECT_EQ(other.fault_latency().count[CounterBlock::latency_bucket(5)], 1u) << "stays as it was";
}

TEST(CounterBlock, LosesNoCountOfManyThreads) {
  constexpr unsigned kThreads = 20, kCounts = 20'000;  // more threads than shards
  CounterBlock block;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (unsigned j = 0; j < kCounts; ++j) {
        block.add(Counter::faults);
        block.add(Counter::read_bytes, 4096);
        block.fault_took(100);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(block.sum().faults, uint64_t{kThreads} * kCounts);
  EXPECT_EQ(block.sum().read_bytes, uint64_t{kThreads} * kCounts * 4096);
  EXPECT_EQ(block.fault_latency().count[6], uint64_t{kThreads} * kCounts);
}

TEST(CounterBlock, LatenciesFallBetweenTheEdgesOfTheirBucket) {
  EXPECT_EQ(CounterBlock::latency_bucket(0), 0u);
  EXPECT_EQ(CounterBlock::latency_bucket(1), 0u);
  for (size_t i = 1; i < LatencyHistogram::kBuckets; ++i) {
    EXPECT_EQ(CounterBlock::latency_bucket(uint64_t{1} << i), i);
    EXPECT_EQ(CounterBlock::latency_bucket((uint64_t{2} << i) - 1), i);
  }
  EXPECT_EQ(CounterBlock::latency_bucket(uint64_t{1} << 40), LatencyHistogram::kBuckets - 1);
  EXPECT_EQ(CounterBlock::latency_bucket(UINT64_MAX), LatencyHistogram::kBuckets - 1);
}

TEST(CounterBlock, AThreadKeepsItsShard) {
  const size_t mine = shard_of_thread(8);
  std::thread([] { shard_of_thread(8); }).join();
  EXPECT_EQ(shard_of_thread(8), mine);
  EXPECT_LT(mine, 8u);
}

TEST(CounterBlock, ThreadsThatFollowEachOtherGetDifferentShards) {
  size_t first = 0, second = 0;
  std::thread([&] { first = shard_of_thread(8); }).join();
  std::thread([&] { second = shard_of_thread(8); }).join();
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace outcore::metrics
