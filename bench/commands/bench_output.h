// Output of benchmarks: one line a run, as JSON or for people. Standard output.
#pragma once

#include <vector>

#include "bench/runner.h"

namespace outcore::cli {

class BenchOutput {
 public:
  explicit BenchOutput(bool is_json) : is_json_(is_json) {}
  void run(const bench::RunResult& result);
  // Medians, spread, and Outcore's ratio to each rival. Nothing in JSON: `bench compare` does it.
  void summary(const std::vector<bench::Series>& all) const;

 private:
  bool is_json_, has_head_ = false, has_told_unlimited_ = false;
};

}  // namespace outcore::cli
