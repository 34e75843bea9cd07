// Metrics: counters and gauges of what happened. There is one list; names, units and help are the
// same in every language, in JSON and in `outcore info --metrics`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace outcore {

// X(name, unit, help)
#define OUTCORE_COUNTERS(X)                                                                        \
  X(faults, "count", "faults that reached the runtime")                                            \
  X(fills, "pages", "pages brought in by a fault or a call, which waited for them")                \
  X(prefetch_fills, "pages", "pages brought in ahead of a fault")                                  \
  X(zero_fills, "pages", "pages never written and never stored: filled without I/O")               \
  X(minor_faults, "count", "faults on pages that were resident through another view")              \
  X(write_faults, "count", "first writes to clean pages that took a fault")                        \
  X(rescues, "pages", "leaving pages touched before they were freed: back without I/O")            \
  X(evictions, "pages", "pages freed to make room or on request")                                  \
  X(write_backs, "pages", "pages of which something was written back")                             \
  X(read_bytes, "bytes", "read from stores")                                                       \
  X(written_bytes, "bytes", "written to stores")                                                   \
  X(read_requests, "count", "transfers from stores")                                               \
  X(write_requests, "count", "transfers to stores")                                                \
  X(fill_errors, "count", "fills that failed")                                                     \
  X(write_back_errors, "count",                                                                    \
    "write-backs that failed; the pages stay dirty and are tried again")                           \
  X(waits_for_frame, "count", "fills that found no free frame and had to evict or wait")           \
  X(waits_for_page, "count", "faults that waited for another thread's fill, unmap or write-back")  \
  X(wait_for_frame_ns, "nanoseconds", "time in waits_for_frame")                                   \
  X(wait_for_page_ns, "nanoseconds", "time in waits_for_page")                                     \
  X(prefetch_dropped, "pages", "prefetches given up: no free frame, queue full, or already there") \
  X(flushes, "count", "flush calls")                                                               \
  X(discarded, "pages", "pages dropped by discard")                                                \
  X(learnt_fills, "pages", "of prefetch_fills: pages that a profile of an earlier run named")      \
  X(budget_shrinks, "count", "times that budget = auto made the budget smaller")                   \
  X(budget_growths, "count", "times that it made it larger")                                       \
  X(budget_shrink_failures, "count",                                                               \
    "times that it could not, or not as much as it wanted, because pages could not leave; tried "  \
    "again")                                                                                       \
  X(fault_ns, "nanoseconds", "time in faults, from the entry of the handler: of all threads")      \
  X(refaults, "pages",                                                                             \
    "of fills and prefetch_fills: pages that had been in memory before, and were evicted; of a "   \
    "buffer's pages: those that this process had brought in before")                               \
  X(call_waits, "count",                                                                           \
    "pages that a call (pin, prefault, read or write of a region) did not find ready, and waited " \
    "for")                                                                                         \
  X(call_wait_ns, "nanoseconds", "time in call_waits: of all threads; fault_ns has none of it")

// X(name, unit, help): current values, not sums.
#define OUTCORE_GAUGES(X)                                                                         \
  X(budget_bytes, "bytes", "the limit")                                                           \
  X(used_bytes, "bytes", "resident, leaving and in-flight pages, and bounce buffers")             \
  X(used_bytes_max, "bytes", "the highest used_bytes so far")                                     \
  X(bounce_bytes, "bytes", "bounce buffers, part of used_bytes")                                  \
  X(metadata_bytes, "bytes",                                                                      \
    "page words and frame records touched so far; not part of the budget; looked at ten times "   \
    "a second at most")                                                                           \
  X(degraded, "regions",                                                                          \
    "regions with a write-back that failed and has not succeeded since, or with zeros for bytes " \
    "that could not be read")                                                                     \
  X(replays, "regions", "regions that are being brought in ahead, as a profile says")             \
  X(budget_shrink_ns_max, "nanoseconds", "the longest that budget = auto took to shrink it")

struct Counters {
#define OUTCORE_FIELD(name, unit, help) uint64_t name = 0;
  OUTCORE_COUNTERS(OUTCORE_FIELD)
#undef OUTCORE_FIELD
  Counters& operator+=(const Counters& more);
  // What was counted since they were `before`; never less than 0.
  Counters since(const Counters& before) const;
};

struct Gauges {
#define OUTCORE_FIELD(name, unit, help) uint64_t name = 0;
  OUTCORE_GAUGES(OUTCORE_FIELD)
#undef OUTCORE_FIELD
};

// Fault latency: bucket i counts faults and call_waits, the waits of calls, that took 2^i …
// 2^(i+1) - 1 nanoseconds; a fault is measured from the entry of the handler.
struct LatencyHistogram {
  static constexpr size_t kBuckets = 40;
  std::array<uint64_t, kBuckets> count{};
  // The upper edge of the bucket that contains the given share (0 … 1) of all faults and waits; 0
  // if there were none.
  uint64_t percentile_ns(double share) const;
  LatencyHistogram& operator+=(const LatencyHistogram& more);
  LatencyHistogram since(const LatencyHistogram& before) const;  // as of Counters
};

// How much misses brought in that belonged to no sequential reader.
struct FetchMetrics {
  static constexpr size_t kSizes = 8;
  // How many of these misses brought in 1, 2, 4, … 128 pages.
  std::array<uint64_t, kSizes> clusters{};
  // Pages that came along with those that were asked for, but for the share of them that will be
  // used. It is estimated: some pages are left out at random, and how many of these are asked for
  // later is counted.
  uint64_t left_out = 0, left_out_used = 0;
  // One line: "4 KiB 61 %, 64 KiB 39 %; 7 % of what came along unused"; empty if there were none.
  std::string to_text(uint64_t page_bytes) const;
};

// X(name): what is told of a region in JSON and in Python beside its counters.
#define OUTCORE_REGION_FACTS(X) \
  X(uri)                        \
  X(size_bytes)                 \
  X(page_bytes)                 \
  X(resident_bytes)             \
  X(access)                     \
  X(delivery)                   \
  X(frames)                     \
  X(is_degraded)

struct RegionMetrics {
  std::string uri;
  uint64_t address = 0, size_bytes = 0, page_bytes = 0, resident_bytes = 0;
  std::string access, delivery, frames;
  bool is_degraded = false;
  bool is_unreplicated = false;    // as Store::is_unreplicated()
  Counters counters;               // of the store's pages: regions of one store share them
  FetchMetrics fetches;            // likewise
  LatencyHistogram fault_latency;  // likewise
};

// The policy of one shard; and what `policy = auto` has seen.
struct PolicyMetrics {
  std::string policy;    // with its parameters; of auto, the name of the one that it has taken
  uint64_t changes = 0;  // how often auto took another
  // Pages unmapped while they were in memory, to see whether they are touched; and how many were.
  uint64_t probes = 0, probes_touched = 0;
  // Of auto: what each policy would have cost lately, in units of 1/256 miss, on a sample of the
  // pages. Empty of others.
  struct Candidate {
    std::string policy;
    uint64_t cost = 0;
  };
  std::vector<Candidate> candidates;
  uint64_t cost_of_twice = 0;  // of the first candidate, with twice the memory
  // One line: "s3-fifo (di-mmap would cost 1.14 ×, fifo 1.38 ×; with twice the memory s3-fifo
  // 0.70 ×), 3 changes"; empty without candidates.
  std::string to_text() const;
};

struct Metrics {
  Counters counters;
  Gauges gauges;
  LatencyHistogram fault_latency;
  std::vector<RegionMetrics> regions;
  std::vector<PolicyMetrics> policies;  // one a shard
  std::string to_json() const;          // one object, one line
  std::string to_text() const;          // a table for people
};

struct MetricInfo {
  std::string_view name, unit, help;
  bool is_counter;
};
// The list above, for tables and exporters.
const std::vector<MetricInfo>& metric_list();

}  // namespace outcore
