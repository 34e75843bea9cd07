#include "bench/run_plan.h"

#include <algorithm>

#include "bench/check.h"

namespace outcore::bench {
namespace {

uint64_t parts_of(uint64_t whole, uint64_t part) { return (whole + part - 1) / part; }

}  // namespace

RunPlan::RunPlan(const Options& options)
    : units_(options.size_bytes / kUnitBytes),
      processes_(options.processes),
      threads_(options.threads),
      memory_units_(options.budget_bytes / options.processes / kUnitBytes),
      slice_units_(parts_of(units_, processes_)) {
  if (memory_units_ == 0) return;
  runs_each_ = parts_of(slice_units_, memory_units_);
  run_units_ = parts_of(slice_units_, runs_each_);  // about equal
}

WordRange RunPlan::run(uint64_t number) const {
  BENCH_CHECK(number < runs());
  const uint64_t slice = number / runs_each_ * slice_units_;
  const uint64_t end = std::min(slice + slice_units_, units_);
  const uint64_t first = slice + number % runs_each_ * run_units_;
  return {std::min(first, end) * kUnitWords, std::min(first + run_units_, end) * kUnitWords};
}

unsigned RunPlan::mergers() const {
  return static_cast<unsigned>(std::min<uint64_t>(threads_, memory_units_ / (runs() + 1)));
}

}  // namespace outcore::bench
