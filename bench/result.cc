#include "bench/result.h"

#include <cerrno>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "bench/check.h"
#include "cli/text.h"

namespace outcore::bench {
namespace {

// A resident touch takes less, a miss more, on every machine and device that we measured.
constexpr uint64_t kMissNs = 1500;

double rounded(double x, double step) { return std::round(x / step) * step; }

// Of what can be compared and drawn: the product of a rate and a time is a number, too.
constexpr double kNumberMin = 1e-9, kNumberMax = 1e18;
constexpr uint64_t kThreadsOrProcessesMax = 65'535;  // their product fits in 32 bits
constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();

// Fields: what a line says, each of the kind that it must be. The first that is not is the error.
class Fields {
 public:
  explicit Fields(const nlohmann::json& line) : line_(line) {}
  const Error& error() const { return error_; }

  std::string text(const char* key) {
    const nlohmann::json* const found = find(key);
    if (found == nullptr) return "";
    if (found->is_string()) return found->get<std::string>();
    refuse(key, found, "a text");
    return "";
  }

  bool truth(const char* key) {
    const nlohmann::json* const found = find(key);
    if (found == nullptr) return false;
    if (found->is_boolean()) return found->get<bool>();
    refuse(key, found, "true or false");
    return false;
  }

  // `usual` if the line does not say.
  uint64_t count(const char* key, uint64_t usual, uint64_t least, uint64_t most) {
    const nlohmann::json* const found = find(key);
    if (found == nullptr) return usual;
    const bool is_count =
        found->is_number_unsigned() || (found->is_number_integer() && found->get<int64_t>() >= 0);
    const uint64_t value = is_count ? found->get<uint64_t>() : 0;
    if (is_count && value >= least && value <= most) return value;
    const std::string limit = most == kAny ? " or more" : " … " + std::to_string(most);
    refuse(key, found, "a whole number, " + std::to_string(least) + limit);
    return usual;
  }

  // 0 will do if `may_be_zero`, and is what a line says that has no such key.
  double number(const char* key, bool may_be_zero) {
    const nlohmann::json* const found = find(key);
    const double value = found != nullptr && found->is_number() ? found->get<double>() : 0;
    const bool is_number = found == nullptr || found->is_number();
    if (is_number && may_be_zero && value == 0) return 0;
    if (is_number && value >= kNumberMin && value <= kNumberMax) return value;
    refuse(key, found, may_be_zero ? "0 or a number up to 1e18" : "a number above 0, 1e-9 … 1e18");
    return 0;
  }

 private:
  const nlohmann::json* find(const char* key) const {
    const auto found = line_.find(key);
    return found == line_.end() ? nullptr : &*found;
  }

  void refuse(const char* key, const nlohmann::json* found, const std::string& wanted) {
    static constexpr size_t kShownMax = 40;
    if (error_.code != 0) return;
    std::string value = found == nullptr ? "missing" : found->dump(-1, ' ', true);
    if (value.size() > kShownMax) value = value.substr(0, kShownMax) + "…";
    error_ = Error{EINVAL, std::string("'") + key + "' is " + value + " and must be " + wanted +
                               ": use what `outcore bench --json` printed"};
  }

  const nlohmann::json& line_;
  Error error_;
};

nlohmann::json json_of(const Extra& extra) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [name, value] : extra)
    std::visit([&, &key = name](const auto& held) { all[key] = held; }, value.any());
  return all;
}

Extra extra_of(const nlohmann::json& line) {
  Extra all;
  for (const auto& [name, value] : line.items()) {
    if (value.is_boolean()) all[name] = value.get<bool>();
    if (value.is_number_float()) all[name] = value.get<double>();
    if (value.is_number_unsigned())
      all[name] = value.get<uint64_t>();
    else if (value.is_number_integer())
      all[name] = value.get<int64_t>();
    if (value.is_string()) all[name] = value.get<std::string>();
  }
  return all;
}

}  // namespace

double RunResult::p50_us() const { return latency.percentile_ns(0.50, kMissNs) / 1000; }
double RunResult::p99_us() const { return latency.percentile_ns(0.99, kMissNs) / 1000; }

nlohmann::json RunResult::to_json() const {
  BENCH_CHECK(std::isfinite(seconds) && seconds >= 0);
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
  line.update(json_of(extra));
  return line;
}

std::string RunResult::to_wire() const {
  BENCH_CHECK(std::isfinite(seconds) && std::isfinite(work));
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
                        {"extra", json_of(extra)}}
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
  result.extra = extra_of(wire["extra"]);
  return result;
}

Result<RunResult> RunResult::from_json(const nlohmann::json& line) {
  if (!line.is_object() || !line.contains("workload") || !line.contains("rate"))
    return Error{EINVAL, "a line is no benchmark's: use what `outcore bench --json` printed"};
  Fields fields(line);
  RunResult result;
  result.workload = fields.text("workload");
  result.memory = fields.text("memory");
  result.store = fields.text("store");
  result.device = fields.text("device");
  result.unit = fields.text("unit");
  result.stop_reason = fields.text("stopped_because");
  result.is_checked = fields.truth("checked");
  result.is_stopped = fields.truth("stopped");
  result.data_bytes = fields.count("data_bytes", 0, 0, kAny);
  result.budget_bytes = fields.count("budget_bytes", 0, 0, kAny);
  result.page_bytes = fields.count("page_bytes", 0, 0, kAny);
  result.threads = static_cast<unsigned>(fields.count("threads", 0, 1, kThreadsOrProcessesMax));
  result.processes = static_cast<unsigned>(fields.count("processes", 1, 1, kThreadsOrProcessesMax));
  result.seconds = fields.number("seconds", result.is_stopped);
  result.work = fields.number("rate", result.is_stopped) * result.seconds;
  if (fields.error().code != 0) return fields.error();
  result.extra = extra_of(line);
  return result;
}

Result<std::vector<RunResult>> read_runs(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) return cli::failure(errno, "open " + path);
  std::vector<RunResult> runs;
  std::string line;
  for (unsigned number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    auto run = RunResult::from_json(nlohmann::json::parse(line, nullptr, false));
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
