// RunPlan: which sorted runs a sort in two passes makes of a file within its budget.
#pragma once

#include <cstdint>

#include "bench/options.h"
#include "bench/partition.h"

namespace outcore::bench {

// Each process has its share of the budget, and makes runs of it of its own slice of the file. All
// begin and end at units.
class RunPlan {
 public:
  explicit RunPlan(const Options& options);

  uint64_t words() const { return units_ * kUnitWords; }
  uint64_t memory_bytes() const { return memory_units_ * kUnitBytes; }  // of each process
  // Of all processes; of a small file those of the last may be empty. 0: no process has a unit.
  uint64_t runs() const { return processes_ * runs_each_; }
  uint64_t runs_each() const { return runs_each_; }
  WordRange run(uint64_t number) const;
  // All words have room: there is nothing to merge.
  bool is_one_pass() const { return runs() == 1; }
  // Threads of each process that merge: each has a unit of every run, and one that it writes. 0:
  // there is no room for one, and two passes are not enough.
  unsigned mergers() const;

  // Beside the runs is a unit with words of each, at equal distances, for who divides the merge.
  uint64_t samples_of(uint64_t number) const { return (units_ + number) * kUnitWords; }
  uint64_t file_bytes() const { return (units_ + runs()) * kUnitBytes; }

 private:
  uint64_t units_, processes_;
  unsigned threads_;
  uint64_t memory_units_, slice_units_;
  uint64_t runs_each_ = 0, run_units_ = 0;
};

}  // namespace outcore::bench
