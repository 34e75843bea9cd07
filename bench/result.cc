#include "bench/result.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>

#include "bench/check.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

using cli::Json;
using cli::JsonFields;

// A resident touch takes less, a miss more, on every machine and device that we measured.
constexpr uint64_t kMissNs = 1500;

double rounded(double x, double step) { return std::round(x / step) * step; }

// Of what can be compared and drawn: the product of a rate and a time is a number, too.
constexpr double kNumberMin = 1e-9, kNumberMax = 1e18;
constexpr uint64_t kThreadsOrProcessesMax = 65'535;  // their product fits in 32 bits
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

// `usual` if the line does not say.
uint64_t count_in(JsonFields& fields, const char* key, uint64_t usual, uint64_t least,
                  uint64_t most) {
  if (!fields.contains(key)) return usual;
  const auto value = fields.get<uint64_t>(key);
  if (value < least || value > most)
    fields.refuse(key, JsonFields::whole_number(static_cast<int64_t>(least), most));
  return value;
}

// 0 will do if `may_be_zero`, and is what a line says that has no such key.
double number_in(JsonFields& fields, const char* key, bool may_be_zero) {
  const double value = fields.get(key, 0.0);
  if (may_be_zero && value == 0) return 0;
  if (!(value >= kNumberMin && value <= kNumberMax))
    fields.refuse(key, may_be_zero ? "0 or a number up to 1e18" : "a number above 0, 1e-9 … 1e18");
  return value;
}

Json json_of(const Extra& extra) {
  Json all = Json::object();
  for (const auto& [name, value] : extra)
    std::visit([&, &key = name](const auto& held) { all[key] = held; }, value.any());
  return all;
}

Extra extra_of(const Json& line) {
  Extra all;
  for (const auto& [name, value] : line.members())
    std::visit(
        [&, &key = name](const auto& held) {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_arithmetic_v<Held> || std::is_same_v<Held, std::string>)
            all[key] = held;
        },
        value.any());
  return all;
}

}  // namespace

double RunResult::p50_us() const { return latency.percentile_ns(0.50, kMissNs) / 1000; }
double RunResult::p99_us() const { return latency.percentile_ns(0.99, kMissNs) / 1000; }

Json RunResult::to_json() const {
  BENCH_CHECK(std::isfinite(seconds) && seconds >= 0);
  Json line = {{"workload", workload},
               {"memory", memory},
               {"store", store},
               {"device", device},
               {"data_bytes", data_bytes},
               {"budget_bytes", budget_bytes},
               {"threads", threads},
               {"processes", processes},
               {"page_bytes", page_bytes},
               {"started_ns", started_ns},
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
  if (!reuse.is_null()) line["reuse"] = reuse;
  line.update(json_of(extra));
  return line;
}

std::string RunResult::to_wire() const {
  BENCH_CHECK(std::isfinite(seconds) && std::isfinite(work));
  Json buckets = Json::array();
  for (size_t i = 0; i < Histogram::kBuckets; ++i)
    if (latency.count(i) != 0) buckets.push_back(Json::array({i, latency.count(i)}));
  return Json{{"seconds", seconds},
              {"work", work},
              {"unit", unit},
              {"page_bytes", page_bytes},
              {"fills", fills},
              {"read_bytes", read_bytes},
              {"written_bytes", written_bytes},
              {"latency", buckets},
              {"reuse", reuse},
              {"extra", json_of(extra)}}
      .dump();
}

std::optional<RunResult> RunResult::from_wire(const Json& wire) {
  JsonFields fields(wire);
  RunResult result;
  result.seconds = fields.get<double>("seconds");
  result.work = fields.get<double>("work");
  result.unit = fields.get<std::string>("unit");
  result.page_bytes = fields.get<uint64_t>("page_bytes");
  result.fills = fields.get<uint64_t>("fills");
  result.read_bytes = fields.get<uint64_t>("read_bytes");
  result.written_bytes = fields.get<uint64_t>("written_bytes");
  for (const Json& bucket : fields.items("latency"))
    result.latency.add(bucket[0].as<uint64_t>().value_or(0), bucket[1].as<uint64_t>().value_or(0));
  result.reuse = wire["reuse"];
  result.extra = extra_of(wire["extra"]);
  if (!fields.ok()) return std::nullopt;
  return result;
}

Result<RunResult> RunResult::from_json(const Json& line) {
  if (!line.is_object() || !line.contains("workload") || !line.contains("rate"))
    return Error{EINVAL, "a line is not of a benchmark: use what `outcore bench --json` printed"};
  JsonFields fields(line);
  RunResult result;
  result.workload = fields.get("workload", std::string());
  result.memory = fields.get("memory", std::string());
  result.store = fields.get("store", std::string());
  result.device = fields.get("device", std::string());
  result.unit = fields.get("unit", std::string());
  result.stop_reason = fields.get("stopped_because", std::string());
  result.is_checked = fields.get("checked", false);
  result.is_stopped = fields.get("stopped", false);
  result.data_bytes = count_in(fields, "data_bytes", 0, 0, kAny);
  result.budget_bytes = count_in(fields, "budget_bytes", 0, 0, kAny);
  result.page_bytes = count_in(fields, "page_bytes", 0, 0, kAny);
  result.started_ns = count_in(fields, "started_ns", 0, 0, kAny);
  result.threads = static_cast<unsigned>(count_in(fields, "threads", 0, 1, kThreadsOrProcessesMax));
  result.processes =
      static_cast<unsigned>(count_in(fields, "processes", 1, 1, kThreadsOrProcessesMax));
  result.seconds = number_in(fields, "seconds", result.is_stopped);
  result.work = number_in(fields, "rate", result.is_stopped) * result.seconds;
  if (!fields.ok())
    return Error{EINVAL, fields.error().message + ": use what `outcore bench --json` printed"};
  result.extra = extra_of(line);
  return result;
}

Result<std::vector<RunResult>> read_runs(const std::string& path) {
  const char* const remedy = "name a file of what `outcore bench --json` printed";
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) return cli::failure(errno, "open " + path, remedy);
  if (S_ISCHR(facts.st_mode) || S_ISBLK(facts.st_mode))
    return Error{
        EINVAL, "read runs of " + path + ": it is a device: give a file of outcore bench … --json"};
  errno = 0;
  std::ifstream file(path);
  if (!file) return cli::failure(errno, "open " + path, remedy);
  std::vector<RunResult> runs;
  std::string line;
  for (unsigned number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    auto run = RunResult::from_json(Json::parse_or_null(line));
    if (!run)
      return Error{EINVAL, path + ", line " + std::to_string(number) + ": " + run.message()};
    runs.push_back(std::move(run).value());
  }
  if (file.bad()) return cli::failure(errno != 0 ? errno : EIO, "read " + path);
  if (runs.empty())
    return Error{EINVAL, path + " has no runs: make it with outcore bench … --json"};
  return runs;
}

}  // namespace outcore::bench
