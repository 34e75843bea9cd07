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

LatencyHistogram CounterBlock::fault_latency() const {
  LatencyHistogram histogram;
  for (const Shard& shard : shards_)
    for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i)
      histogram.count[i] += shard.latency[i].load(std::memory_order_relaxed);
  return histogram;
}

}  // namespace outcore::metrics
