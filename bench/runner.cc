#include "bench/runner.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <utility>

#include "bench/option_checks.h"
#include "cli/text.h"

namespace outcore::bench {

const RunResult& Series::median_run() const {
  std::vector<const RunResult*> finished;
  for (const RunResult& run : runs)
    if (!run.is_stopped) finished.push_back(&run);
  if (finished.empty()) return runs.front();
  const auto middle = finished.begin() + static_cast<int64_t>(finished.size() / 2);
  std::nth_element(finished.begin(), middle, finished.end(),
                   [](auto* a, auto* b) { return a->rate() < b->rate(); });
  return **middle;
}

double Series::median_rate() const { return median_run().rate(); }
double Series::median_seconds() const { return median_run().seconds; }

bool Series::is_stopped() const {
  return std::all_of(runs.begin(), runs.end(), [](const auto& run) { return run.is_stopped; });
}

bool Series::is_checked() const {
  return std::all_of(runs.begin(), runs.end(),
                     [](const auto& run) { return run.is_checked || run.is_stopped; });
}

double Series::outer_difference() const {
  if (runs.size() < 2) return 0;
  const double first = runs.front().rate(), last = runs.back().rate();
  const double slower = std::min(first, last);
  return slower > 0 ? std::abs(first - last) / slower : 1;
}

Result<Ratio> compare(const Series& a, const Series& b) {
  for (const Series* series : {&a, &b}) {
    if (series->runs.empty() || series->is_stopped())
      return Error{ETIME, series->memory + " did not finish"};
    if (series->outer_difference() > kOuterDifferenceMax)
      return Error{EAGAIN, cli::format("no ratio: the first and last run of %s differ by %.0f %%",
                                       series->memory.c_str(), series->outer_difference() * 100)};
  }
  Ratio ratio;
  ratio.value = a.median_rate() / b.median_rate();
  const auto extremes = [](const Series& series) {
    double low = 0, high = 0;
    for (const RunResult& run : series.runs) {
      if (run.is_stopped) continue;
      low = low == 0 ? run.rate() : std::min(low, run.rate());
      high = std::max(high, run.rate());
    }
    return std::pair(low, high);
  };
  const auto [a_low, a_high] = extremes(a);
  const auto [b_low, b_high] = extremes(b);
  ratio.low = a_low / b_high;
  ratio.high = a_high / b_low;
  return ratio;
}
Result<std::vector<Series>> run_in_turns(Workload& workload, const Options& options,
                                         const std::function<void(const RunResult&)>& see) {
  std::vector<Series> all;
  for (const std::string& memory : options.memories) {
    if (!workload.takes(memory))
      return Error{EINVAL,
                   options.workload + " cannot use " + memory + ": leave it out of --memory"};
    all.push_back({memory, {}});
  }
  for (unsigned turn = 0; turn < options.repeat; ++turn) {
    for (Series& series : all) {
      // What was stopped once would be again.
      if (!series.runs.empty() && series.runs.back().is_stopped) continue;
      auto run = run_once(workload, options, series.memory);
      if (!run)
        return Error{run.code(), options.workload + " in " + series.memory + ": " + run.message()};
      see(*run);
      series.runs.push_back(std::move(run).value());
    }
  }
  return all;
}

Result<std::vector<Series>> run_in_turns(const Options& options,
                                         const std::function<void(const RunResult&)>& see) {
  if (Status s = check_options(options); !s) return s.error();
  auto workload = make_workload(options);
  if (!workload) return workload.error();
  return run_in_turns(**workload, options, see);
}

}  // namespace outcore::bench
