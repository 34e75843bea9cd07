#include "core/metrics/counter_block.h"

namespace outcore::metrics {

uint64_t CounterBlock::sum(Counter counter) const {
  uint64_t sum = 0;
  for (const Shard& shard : shards_)
    sum += shard.count[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  return sum;
}

Counters CounterBlock::sum() const {
  Counters sums;
#define OUTCORE_SUM(name, unit, help) sums.name = sum(Counter::name);
  OUTCORE_COUNTERS(OUTCORE_SUM)
#undef OUTCORE_SUM
  return sums;
}

void CounterBlock::add_all_of(const CounterBlock& other) {
  OC_CHECK(&other != this);
  for (size_t i = 0; i < kCounterCount; ++i)
    add(static_cast<Counter>(i), other.sum(static_cast<Counter>(i)));
  const LatencyHistogram latency = other.fault_latency();
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
    shard().latency[i].fetch_add(latency.count[i], std::memory_order_relaxed);
}

void CounterBlock::clear() {
  for (Shard& shard : shards_) {
    for (std::atomic<uint64_t>& count : shard.count) count.store(0, std::memory_order_relaxed);
    for (std::atomic<uint64_t>& count : shard.latency) count.store(0, std::memory_order_relaxed);
  }
}

LatencyHistogram CounterBlock::fault_latency() const {
  LatencyHistogram histogram;
  for (const Shard& shard : shards_)
    for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
      histogram.count[i] += shard.latency[i].load(std::memory_order_relaxed);
  return histogram;
}

}  // namespace outcore::metrics
