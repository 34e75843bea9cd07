// CounterBlock: the live counters behind outcore/metrics.h. Any thread; the fault path: allocates
// nothing.
//
// Counts are kept in shards, a cache line apart, so that threads that fault at the same time do not
// write the same line. A thread uses one shard for life.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/base/assert.h"
#include "outcore/metrics.h"

namespace outcore::metrics {

// One member for each of OUTCORE_COUNTERS, with the same name: Counter::faults.
enum class Counter : uint8_t {
#define OUTCORE_MEMBER(name, unit, help) name,
  OUTCORE_COUNTERS(OUTCORE_MEMBER)
#undef OUTCORE_MEMBER
};

#define OUTCORE_ONE(name, unit, help) +1
inline constexpr size_t kCounterCount = 0 OUTCORE_COUNTERS(OUTCORE_ONE);
#undef OUTCORE_ONE

// The shard of this thread, of `shards` (a power of two). Round robin over threads; no system call.
inline size_t shard_of_thread(size_t shards) {
  static std::atomic<uint32_t> next{0};
  // Initial-exec, because other models may allocate at a thread's first access.
  [[gnu::tls_model("initial-exec")]] static thread_local uint32_t mine = 0;  // 0: none yet
  OC_ASSERT(shards != 0);
  OC_ASSERT((shards & (shards - 1)) == 0);
  if (mine == 0) mine = next.fetch_add(1, std::memory_order_relaxed) | 0x80000000u;
  return mine & (shards - 1);
}

class CounterBlock {
 public:
  void add(Counter counter, uint64_t n = 1) {
    OC_ASSERT(static_cast<size_t>(counter) < kCounterCount);
    shard().count[static_cast<size_t>(counter)].fetch_add(n, std::memory_order_relaxed);
  }
  // Counts one fault that took this long from the entry of the handler.
  void fault_took(uint64_t ns) {
    Shard& mine = shard();
    mine.latency[latency_bucket(ns)].fetch_add(1, std::memory_order_relaxed);
    mine.count[static_cast<size_t>(Counter::fault_ns)].fetch_add(ns, std::memory_order_relaxed);
  }
  // Counts one page for which a call of the program waited so long.
  void call_waited(uint64_t ns) {
    Shard& mine = shard();
    mine.latency[latency_bucket(ns)].fetch_add(1, std::memory_order_relaxed);
    mine.count[static_cast<size_t>(Counter::call_waits)].fetch_add(1, std::memory_order_relaxed);
    mine.count[static_cast<size_t>(Counter::call_wait_ns)].fetch_add(ns, std::memory_order_relaxed);
  }

  // Adds all that the other has counted.
  void add_all_of(const CounterBlock& other);

  // Sums over the shards. Not a snapshot: counts made meanwhile may be included or not.
  Counters sum() const;
  uint64_t sum(Counter counter) const;
  LatencyHistogram fault_latency() const;
  void clear();  // REQUIRES: nobody counts meanwhile

  // Bucket i holds 2^i … 2^(i+1) - 1 nanoseconds; 0 is in the first bucket, too long times in the
  // last.
  static constexpr size_t latency_bucket(uint64_t ns) {
    const size_t bucket = ns == 0 ? 0 : 63 - static_cast<size_t>(__builtin_clzll(ns));
    return bucket < LatencyHistogram::kBuckets ? bucket : LatencyHistogram::kBuckets - 1;
  }

 private:
  static constexpr size_t kShards = 8;
  struct alignas(64) Shard {
    std::array<std::atomic<uint64_t>, kCounterCount> count{};
    std::array<std::atomic<uint64_t>, LatencyHistogram::kBuckets> latency{};
  };
  Shard& shard() { return shards_[shard_of_thread(kShards)]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace outcore::metrics
