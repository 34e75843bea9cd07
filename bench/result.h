// RunResult: what one run of one memory gave, and its line of JSON (docs: how we measure).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/extra.h"
#include "bench/histogram.h"
#include "cli/json.h"
#include "outcore/result.h"

namespace outcore::bench {

struct RunResult {
  std::string workload, memory, store, device;
  uint64_t data_bytes = 0, budget_bytes = 0, page_bytes = 0;
  unsigned threads = 0, processes = 1;
  uint64_t started_ns = 0;  // by the machine's monotonic clock
  double seconds = 0;
  double work = 0;   // rate = work / seconds, in `unit` a second
  std::string unit;  // "touches/s", "MiB/s", "words/s", "edges/s"
  uint64_t peak_bytes = 0, fills = 0, read_bytes = 0, written_bytes = 0;
  bool is_limited = false;  // the run had a memory cgroup
  bool is_checked = false;  // its answer was verified
  bool is_stopped = false;  // by the time limit (`seconds` is that) or the memory limit; unverified
  std::string stop_reason;  // "> 120 s, stopped"; empty if it was not
  Histogram latency;        // of touches; not in the JSON line but for p50_us and p99_us
  cli::Json reuse;          // see reuse_in(); null: not recorded
  Extra extra;              // everything else

  double rate() const { return seconds > 0 && !is_stopped ? work / seconds : 0; }
  // Microseconds of the touches that missed: those of 1.5 us or more. 0 if none was timed.
  double p50_us() const;
  double p99_us() const;

  cli::Json to_json() const;    // the line
  std::string to_wire() const;  // between processes: with the histogram
  static std::optional<RunResult> from_wire(const cli::Json& wire);
  // Errors: EINVAL, with the key, what it holds and what it must be. A run that was not stopped has
  // a rate and a time above 0.
  static Result<RunResult> from_json(const cli::Json& line);
};

// The runs of a file of such lines. Errors: no file, a line that is none (with its number), no
// line.
Result<std::vector<RunResult>> read_runs(const std::string& path);

}  // namespace outcore::bench
