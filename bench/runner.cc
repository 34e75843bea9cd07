#include "bench/runner.h"

#include <algorithm>
#include <cerrno>

#include "bench/medium.h"
#include "bench/text.h"

namespace outcore::bench {
namespace {

bool is_power_of_two(uint64_t n) { return n != 0 && (n & (n - 1)) == 0; }

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

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
      return Error{EAGAIN, format("no ratio: the first and last run of %s differ by %.0f %%",
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

Status check_options(const Options& o) {
  const auto refuse = [](std::string why) { return Status(Error{EINVAL, std::move(why)}); };
  if (!has(workload_names(), o.workload))
    return refuse("workload '" + o.workload + "' is unknown: use one of " +
                  joined(workload_names()));
  for (const std::string& memory : o.memories)
    if (!has(memory_names(), memory))
      return refuse("memory '" + memory + "' is unknown: use one of " + joined(memory_names()) +
                    ", or all");
  if (o.memories.empty()) return refuse("--memory names no memory: use mmap,outcore or all");
  if (!is_power_of_two(o.page_bytes) || o.page_bytes < 4096 || o.page_bytes > (uint64_t{16} << 20))
    return refuse("--page " + format_bytes(o.page_bytes) +
                  " is no page size: use a power of two, 4k … 16M");
  if (o.workload != "bfs" && (o.size_bytes < kUnitBytes || o.size_bytes % kUnitBytes != 0))
    return refuse("--size must be a multiple of 4 KiB, and not 0");
  if (o.threads == 0 || o.threads > kThreadsMax) return refuse("--threads must be 1 … 4096");
  if (o.processes == 0 || o.processes > 256) return refuse("--processes must be 1 … 256");
  if (o.processes > 1 && o.workload != "random-io")
    return refuse(o.workload + " runs in one process: leave out --processes");
  if (o.repeat == 0) return refuse("--repeat must be 1 or more");
  if (o.stride == 0) return refuse("--stride must be 1 or more");
  if (o.passes == 0) return refuse("--passes must be 1 or more");
  if (o.depth == 0 || o.depth > 1024) return refuse("--depth must be 1 … 1024");
  if (o.write_percent > 100) return refuse("--write-percent must be 0 … 100");
  if (!has({"uniform", "zipf", "once"}, o.distribution))
    return refuse("distribution '" + o.distribution +
                  "' is unknown: use uniform, zipf[:theta] or once");
  if (!(o.theta > 0 && o.theta < 1))
    return refuse("zipf's theta must lie between 0 and 1, as in zipf:0.99");
  if (o.scale < 6 || o.scale > 32) return refuse("--scale must be 6 … 32");
  if (o.edge_factor == 0 || o.edge_factor > 1024) return refuse("--edge-factor must be 1 … 1024");
  if (is_volatile(o.store))
    return refuse("store " + o.store +
                  " dies with its process: use one that stays, as file:PATH or "
                  "sparse:DIR");
  if (!o.store.empty() && plain_path(o.store).empty())
    for (const std::string& memory : o.memories)
      if (memory != "outcore")
        return refuse(memory + " cannot use the store " + o.store + ": say --memory outcore");
  return {};
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
