#include "sight/commands/watch_json.h"

namespace outcore::cli {
namespace {

Json json_of(const Counters& counters) {
  Json json = Json::object();
#define OUTCORE_KEY(name, unit, help) json[#name] = counters.name;
  OUTCORE_COUNTERS(OUTCORE_KEY)
#undef OUTCORE_KEY
  return json;
}

Json json_of(const LatencyHistogram& latency) {
  return {{"p50_ns", latency.percentile_ns(0.5)},
          {"p90_ns", latency.percentile_ns(0.9)},
          {"p99_ns", latency.percentile_ns(0.99)},
          {"max_ns", latency.percentile_ns(1)},
          {"buckets", Json::Array(latency.count.begin(), latency.count.end())}};
}

// null: nothing is known yet.
Json json_of(const Change& change) {
  if (!change.is_known()) return nullptr;
  Json a_second = Json::object();
#define OUTCORE_KEY(name, unit, help) a_second[#name] = change.a_second(change.counters.name);
  OUTCORE_COUNTERS(OUTCORE_KEY)
#undef OUTCORE_KEY
  return {{"seconds", change.seconds},
          {"stalled", change.stalled()},
          {"filled_a_second", change.a_second(change.filled())},
          {"refault_share", change.refault_share()},
          {"a_second", a_second},
          {"fault_latency", json_of(change.latency)}};
}

Json json_of(const Amplification& amplification) {
  const auto value = amplification.value();
  return value ? Json(*value) : Json();
}

Json json_of(const std::optional<uint64_t>& bytes) { return bytes ? Json(*bytes) : Json(); }

Json json_of(const RuntimeView& runtime) {
  const Gauges& gauges = runtime.now.metrics.gauges;
  Json stores = Json::array(), left = Json::array();
  for (const StoreView& store : runtime.stores) stores.push_back(json_of(store));
  for (const LeftFile& file : runtime.now.left_files) left.push_back(cli::json_of(file));
  return {{"version", runtime.now.version},
          {"started_ns", runtime.now.started_ns},
          {"policy", runtime.now.policy},
          {"policy_now", runtime.now.policy_now},
          {"budget_source", runtime.now.budget_source},
          {"shared_buffer", runtime.now.shared_buffer},
          {"left_to_kernel", left},
          {"budget_bytes", gauges.budget_bytes},
          {"used_bytes", gauges.used_bytes},
          {"used_bytes_max", gauges.used_bytes_max},
          {"bounce_bytes", gauges.bounce_bytes},
          {"degraded", gauges.degraded},
          {"stores", stores}};
}

}  // namespace

Json json_of(const LeftFile& file) {
  return {{"path", file.path}, {"size_bytes", file.size_bytes}, {"reason", file.reason}};
}

Json json_of(const StoreView& store) {
  Amplification amplification;
  amplification.add(store.now);
  Json json = {{"dirty_bytes", json_of(store.dirty_bytes)},
               {"fetches", store.now.fetches.to_text(store.now.page_bytes)},
               {"amplification", json_of(amplification)},
               {"counters", json_of(store.now.counters)},
               {"fault_latency", json_of(store.now.fault_latency)},
               {"interval", json_of(store.change)}};
#define OUTCORE_KEY(name) json[#name] = store.now.name;
  OUTCORE_REGION_FACTS(OUTCORE_KEY)
#undef OUTCORE_KEY
  return json;
}

Json json_of(const ProcessView& process) {
  Json runtimes = Json::array();
  for (const RuntimeView& runtime : process.runtimes) runtimes.push_back(json_of(runtime));
  return {{"pid", static_cast<int64_t>(process.pid)},
          {"user", process.facts.user},
          {"program", process.facts.name},
          {"command", process.facts.command},
          {"cpu_share", process.cpu_share < 0 ? Json() : Json(process.cpu_share)},
          {"rss_bytes", process.facts.rss_bytes},
          {"budget_bytes", process.budget_bytes},
          {"used_bytes", process.used_bytes},
          {"dirty_bytes", json_of(process.dirty_bytes)},
          {"degraded", process.degraded},
          {"amplification", json_of(process.amplification)},
          {"counters", json_of(process.counters)},
          {"fault_latency", json_of(process.latency)},
          {"interval", json_of(process.change)},
          {"runtimes", runtimes}};
}

Json json_of(const BufferView& buffer) {
  Json members = Json::array();
  for (const pid_t member : buffer.now.members) members.push_back(static_cast<int64_t>(member));
  return {{"name", buffer.now.name},
          {"limit_bytes", buffer.now.limit_bytes},
          {"used_bytes", buffer.now.used_bytes},
          {"resident_bytes", buffer.now.resident_bytes},
          {"written_bytes", buffer.now.written_bytes},
          {"files", static_cast<uint64_t>(buffer.now.files)},
          {"filled_a_second", buffer.fills_a_second},
          {"evictions_a_second", buffer.evictions_a_second},
          {"members", members}};
}

}  // namespace outcore::cli
