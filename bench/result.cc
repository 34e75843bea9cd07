#include "bench/result.h"

#include <cerrno>
#include <cmath>
#include <fstream>

#include "bench/text.h"

namespace outcore::bench {
namespace {

// A resident touch takes less, a miss more, on every machine and device that we measured.
constexpr uint64_t kMissNs = 1500;

double rounded(double x, double step) { return std::round(x / step) * step; }

}  // namespace

double RunResult::p50_us() const { return latency.percentile_ns(0.50, kMissNs) / 1000; }
double RunResult::p99_us() const { return latency.percentile_ns(0.99, kMissNs) / 1000; }

nlohmann::json RunResult::to_json() const {
  nlohmann::json line = {{"workload", workload},
                         {"memory", memory},
                         {"store", store},
                         {"device", device},
                         {"data_bytes", data_bytes},
                         {"budget_bytes", budget_bytes},
                         {"threads", threads},
                         {"processes", processes},
                         {"page_bytes", page_bytes},
                         {"seconds", rounded(seconds, 1e-6)},
                         {"rate", rounded(rate(), 1e-3)},
                         {"unit", unit},
                         {"p50_us", rounded(p50_us(), 1e-2)},
                         {"p99_us", rounded(p99_us(), 1e-2)},
                         {"peak_bytes", peak_bytes},
                         {"fills", fills},
                         {"read_bytes", read_bytes},
                         {"written_bytes", written_bytes},
                         {"limited", is_limited},
                         {"stopped", is_stopped},
                         {"checked", is_checked}};
  if (is_stopped) line["stopped_because"] = stop_reason;
  line.update(extra);
  return line;
}

std::string RunResult::to_wire() const {
  nlohmann::json buckets = nlohmann::json::array();
  for (size_t i = 0; i < Histogram::kBuckets; ++i)
    if (latency.count(i) != 0) buckets.push_back({i, latency.count(i)});
  return nlohmann::json{{"seconds", seconds},
                        {"work", work},
                        {"unit", unit},
                        {"page_bytes", page_bytes},
                        {"fills", fills},
                        {"read_bytes", read_bytes},
                        {"written_bytes", written_bytes},
                        {"latency", buckets},
                        {"extra", extra}}
      .dump();
}

std::optional<RunResult> RunResult::from_wire(const std::string& text) {
  const nlohmann::json wire = nlohmann::json::parse(text, nullptr, false);
  if (!wire.is_object() || !wire.contains("seconds")) return std::nullopt;
  RunResult result;
  result.seconds = wire["seconds"];
  result.work = wire["work"];
  result.unit = wire["unit"];
  result.page_bytes = wire["page_bytes"];
  result.fills = wire["fills"];
  result.read_bytes = wire["read_bytes"];
  result.written_bytes = wire["written_bytes"];
  for (const auto& bucket : wire["latency"]) result.latency.add(bucket[0], bucket[1]);
  result.extra = wire["extra"];
  return result;
}

Result<RunResult> RunResult::from_json(const nlohmann::json& line) {
  if (!line.is_object() || !line.contains("workload") || !line.contains("rate"))
    return Error{EINVAL, "a line is no benchmark's: use what `outcore bench --json` printed"};
  RunResult result;
  result.workload = line.value("workload", "");
  result.memory = line.value("memory", "");
  result.store = line.value("store", "");
  result.device = line.value("device", "");
  result.data_bytes = line.value("data_bytes", uint64_t{0});
  result.budget_bytes = line.value("budget_bytes", uint64_t{0});
  result.page_bytes = line.value("page_bytes", uint64_t{0});
  result.threads = line.value("threads", 0U);
  result.processes = line.value("processes", 1U);
  result.seconds = line.value("seconds", 0.0);
  result.work = line.value("rate", 0.0) * result.seconds;
  result.unit = line.value("unit", "");
  result.is_checked = line.value("checked", false);
  result.is_stopped = line.value("stopped", false);
  result.stop_reason = line.value("stopped_because", "");
  result.extra = line;
  return result;
}

Result<std::vector<RunResult>> read_runs(const std::string& path) {
  std::ifstream file(path);
  if (!file) return failure(errno, "open " + path);
  std::vector<RunResult> runs;
  std::string line;
  for (unsigned number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    auto run = RunResult::from_json(nlohmann::json::parse(line, nullptr, false));
    if (!run)
      return Error{EINVAL, format("%s, line %u: %s", path.c_str(), number, run.message().c_str())};
    runs.push_back(std::move(run).value());
  }
  if (runs.empty())
    return Error{EINVAL, path + " has no runs: make it with outcore bench … --json"};
  return runs;
}

}  // namespace outcore::bench
