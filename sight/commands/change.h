// Change: what was counted between two moments, and what follows from it. A value; any thread.
#pragma once

#include <optional>

#include "outcore/metrics.h"

namespace outcore::cli {

// What threads lost by waiting for pages, and how often they waited: in faults, and in calls that
// brought pages in.
inline uint64_t waited_ns(const Counters& c) { return c.fault_ns + c.call_wait_ns; }
inline uint64_t waits(const Counters& c) { return c.faults + c.call_waits; }

struct Change {
  double seconds = 0;  // 0: nothing is known, as there is no earlier moment
  Counters counters;
  LatencyHistogram latency;

  bool is_known() const { return seconds > 0; }
  double a_second(uint64_t count) const {
    return is_known() ? static_cast<double>(count) / seconds : 0;
  }
  uint64_t filled() const { return counters.fills + counters.prefetch_fills; }
  // How many threads waited for pages on average.
  double stalled() const { return a_second(waited_ns(counters)) / 1e9; }
  // Pages came in for somebody whose wait is not counted yet, because it is not over.
  bool is_stall_known() const {
    return is_known() && (counters.fills == 0 || waits(counters) != 0);
  }
  // Which part of what came in had been in memory before (0 … 1).
  double refault_share() const;
  void add(const Change& other);  // of the same time
};

// Each number the larger of both.
void raise(const Counters& now, Counters* highest);
void raise(const LatencyHistogram& now, LatencyHistogram* highest);
// A number in `now` is less than it was: it is not the same that counts.
bool has_fallen(const Counters& now, const Counters& before);

// How often each byte was read that was ever needed: bytes read ÷ bytes of the pages that were
// brought in, each counted once. Those filled with zeros count as needed: what is written to them
// is read later. Nothing: no page came in.
struct Amplification {
  uint64_t read_bytes = 0, distinct_bytes = 0;
  void add(const RegionMetrics& store);
  std::optional<double> value() const;
};
// Of the pages that came in, each counted once; never more than the store has, as it may have been
// mapped again, and then nobody knows what had come in before.
uint64_t distinct_bytes_of(const RegionMetrics& store);

}  // namespace outcore::cli
