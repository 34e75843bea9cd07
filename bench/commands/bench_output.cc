#include "bench/commands/bench_output.h"

#include <cstdio>

#include "cli/json.h"
#include "cli/text.h"

namespace outcore::cli {

using bench::RunResult;
using bench::Series;

void BenchOutput::run(const RunResult& r) {
  if (is_json_) {
    show_json(r.to_json());
    std::fflush(stdout);
    return;
  }
  if (!has_head_) {
    const auto ahead_kb = static_cast<long long>(r.extra.value("read_ahead_kb", int64_t{-1}));
    std::printf("%s: %s on %s%s, budget %s, %u thread%s%s\n", r.workload.c_str(),
                format_bytes(r.data_bytes).c_str(), r.device.c_str(),
                ahead_kb < 0 ? "" : format(" (read-ahead %lld KiB)", ahead_kb).c_str(),
                format_bytes(r.budget_bytes).c_str(), r.threads, r.threads == 1 ? "" : "s",
                r.processes > 1 ? format(" in each of %u processes", r.processes).c_str() : "");
    std::printf("%-12s %9s %14s %9s %9s %10s %9s %10s %10s  %s\n", "memory", "time", "rate",
                "p50 us", "p99 us", "peak", "fills", "read", "written", "");
    has_head_ = true;
  }
  if (r.is_stopped) {
    std::printf("%-12s %s\n", r.memory.c_str(), r.stop_reason.c_str());
    std::fflush(stdout);
    return;
  }
  std::printf("%-12s %9s %14s %9s %9s %10s %9s %10s %10s  %s\n", r.memory.c_str(),
              format_seconds(r.seconds).c_str(), (format_count(r.rate()) + " " + r.unit).c_str(),
              r.p50_us() > 0 ? format("%.1f", r.p50_us()).c_str() : "-",
              r.p99_us() > 0 ? format("%.1f", r.p99_us()).c_str() : "-",
              r.peak_bytes > 0 ? format_bytes(r.peak_bytes).c_str() : "-",
              format_count(static_cast<double>(r.fills)).c_str(),
              format_bytes(r.read_bytes).c_str(), format_bytes(r.written_bytes).c_str(),
              r.is_checked ? "verified" : "not verified");
  if (!has_told_unlimited_ && r.extra.contains("unlimited_because")) {
    std::fprintf(stderr, "outcore: memory is not limited: %s\n",
                 r.extra.value("unlimited_because", std::string()).c_str());
    has_told_unlimited_ = true;
  }
  std::fflush(stdout);
}

void BenchOutput::summary(const std::vector<Series>& all) const {
  if (is_json_ || all.empty()) return;
  const Series* outcore = nullptr;
  for (const Series& series : all) {
    if (series.memory == "outcore") outcore = &series;
    if (series.runs.size() > 1 && !series.is_stopped())
      std::printf("%-12s median %s %s; first and last run differ by %.0f %%\n",
                  series.memory.c_str(), format_count(series.median_rate()).c_str(),
                  series.runs.front().unit.c_str(), series.outer_difference() * 100);
  }
  if (outcore == nullptr) return;
  for (const Series& series : all) {
    if (&series == outcore) continue;
    const auto ratio = bench::compare(*outcore, series);
    if (ratio)
      std::printf("outcore is %.2f x %s (%.2f … %.2f)\n", ratio->value, series.memory.c_str(),
                  ratio->low, ratio->high);
    else
      std::printf("outcore and %s: %s\n", series.memory.c_str(), ratio.message().c_str());
  }
}

}  // namespace outcore::cli
