// Judges: what the runs of a row of the table say about its target. Each part is one vector of
// Series; where an outer run differs too much the figure says so and nothing is met.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/table.h"

namespace outcore::bench {

using Parts = std::vector<std::vector<Series>>;
using Judge = std::function<RowResult(const Parts&)>;

// Every part: Outcore's rate over the rival's is at least the part's target.
Judge at_least(std::vector<double> targets, std::string rival);
// p50 of Outcore's misses less the device's, in microseconds.
RowResult judge_miss(const Parts& parts, double target_us);
// Threads beyond the first part's make it no slower than 0.95 of it: the spread of a quiet machine.
RowResult judge_scaling(const Parts& parts);
// Pages read: mmap with readahead reads more than it faults for, so bytes are what compares.
RowResult judge_loop(const Parts& parts);
// Time and bytes beside no readahead, part by part. Where a few readers wait for a device readahead
// may bring in more than a fifth that nobody wanted, as it pays in time (decision 0024).
RowResult judge_readahead(const Parts& parts);
RowResult judge_resident(const Parts& parts);
RowResult judge_write_back(const Parts& parts);
RowResult judge_peak(const Parts& parts);

}  // namespace outcore::bench
