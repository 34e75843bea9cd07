// Runner: runs a workload in each memory, one after another in turns, and judges whether figures
// compare.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "bench/result.h"
#include "bench/workload.h"
#include "outcore/result.h"

namespace outcore::bench {

// The runs of one memory.
struct Series {
  std::string memory;
  std::vector<RunResult> runs;

  // Of the runs that were not stopped; the first if all were.
  double median_rate() const;
  double median_seconds() const;
  const RunResult& median_run() const;
  bool is_stopped() const;  // all of them
  bool is_checked() const;  // all that were not stopped
  // By how much the first and the last run differ, as a share of the slower; 0 for a single run.
  double outer_difference() const;
};

// Beyond this a machine was too busy for figures to mean anything.
inline constexpr double kOuterDifferenceMax = 0.20;

struct Ratio {
  double value = 0, low = 0, high = 0;  // of medians; of the extremes
};
// Rates of a over rates of b. Errors: EAGAIN if the outer runs of either differ by more than 20 %,
// ETIME if all runs of one were stopped.
Result<Ratio> compare(const Series& a, const Series& b);

// One run in a child process of its own, in a memory cgroup where that can be made, verified.
// Errors: what failed in the child, EILSEQ if the answer was wrong, EINTR (interrupts.h): data and
// cgroups are taken away.
Result<RunResult> run_once(Workload& workload, const Options& options, const std::string& memory);

// All memories in turns (A B A B), options.repeat times; `see` hears of each run as it ends.
Result<std::vector<Series>> run_in_turns(const Options& options,
                                         const std::function<void(const RunResult&)>& see);
Result<std::vector<Series>> run_in_turns(Workload& workload, const Options& options,
                                         const std::function<void(const RunResult&)>& see);

}  // namespace outcore::bench
