#include "outcore/metrics.h"

#include <algorithm>
#include <cmath>

#include "core/base/json.h"

namespace outcore {
namespace {

using base::Json;

Json json_of(const Counters& counters) {
  Json json;
#define OUTCORE_KEY(name, unit, help) json[#name] = counters.name;
  OUTCORE_COUNTERS(OUTCORE_KEY)
#undef OUTCORE_KEY
  return json;
}

Json json_of(const Gauges& gauges) {
  Json json;
#define OUTCORE_KEY(name, unit, help) json[#name] = gauges.name;
  OUTCORE_GAUGES(OUTCORE_KEY)
#undef OUTCORE_KEY
  return json;
}

Json json_of(const LatencyHistogram& latency) {
  Json json;
  json["p50_ns"] = latency.percentile_ns(0.5);
  json["p90_ns"] = latency.percentile_ns(0.9);
  json["p99_ns"] = latency.percentile_ns(0.99);
  json["p999_ns"] = latency.percentile_ns(0.999);
  json["max_ns"] = latency.percentile_ns(1);
  json["buckets"] = Json::Array(latency.count.begin(), latency.count.end());
  return json;
}

Json json_of(const FetchMetrics& fetches) {
  Json json;
  json["clusters"] = Json::Array(fetches.clusters.begin(), fetches.clusters.end());
  json["left_out"] = fetches.left_out;
  json["left_out_used"] = fetches.left_out_used;
  return json;
}

Json json_of(const RegionMetrics& region) {
  Json json;
#define OUTCORE_KEY(name) json[#name] = region.name;
  OUTCORE_REGION_FACTS(OUTCORE_KEY)
#undef OUTCORE_KEY
  json["address"] = region.address;
  json["is_unreplicated"] = region.is_unreplicated;
  json["counters"] = json_of(region.counters);
  json["fetches"] = json_of(region.fetches);
  return json;
}

Json json_of(const PolicyMetrics& policy) {
  Json json;
  json["policy"] = policy.policy;
  json["changes"] = policy.changes;
  json["probes"] = policy.probes;
  json["probes_touched"] = policy.probes_touched;
  json["candidates"] = Json::array();
  for (const PolicyMetrics::Candidate& candidate : policy.candidates)
    json["candidates"].push_back({{"policy", candidate.policy}, {"cost", candidate.cost}});
  json["cost_of_twice"] = policy.cost_of_twice;
  return json;
}

}  // namespace

Counters& Counters::operator+=(const Counters& more) {
#define OUTCORE_ADD(name, unit, help) name += more.name;
  OUTCORE_COUNTERS(OUTCORE_ADD)
#undef OUTCORE_ADD
  return *this;
}

Counters Counters::since(const Counters& before) const {
  Counters change = *this;
#define OUTCORE_SUBTRACT(name, unit, help) change.name -= std::min(change.name, before.name);
  OUTCORE_COUNTERS(OUTCORE_SUBTRACT)
#undef OUTCORE_SUBTRACT
  return change;
}

LatencyHistogram& LatencyHistogram::operator+=(const LatencyHistogram& more) {
  for (size_t i = 0; i < kBuckets; ++i) count[i] += more.count[i];
  return *this;
}

LatencyHistogram LatencyHistogram::since(const LatencyHistogram& before) const {
  LatencyHistogram change = *this;
  for (size_t i = 0; i < kBuckets; ++i) change.count[i] -= std::min(count[i], before.count[i]);
  return change;
}

uint64_t LatencyHistogram::percentile_ns(double share) const {
  uint64_t all = 0;
  for (uint64_t n : count) all += n;
  if (all == 0) return 0;
  const double rank = std::ceil(std::clamp(share, 0.0, 1.0) * static_cast<double>(all));
  const uint64_t wanted = std::clamp<uint64_t>(static_cast<uint64_t>(rank), 1, all);
  uint64_t seen = 0;
  size_t bucket = 0;
  while ((seen += count[bucket]) < wanted) ++bucket;
  return (uint64_t{2} << bucket) - 1;
}

std::string Metrics::to_json() const {
  Json json;
  json["counters"] = json_of(counters);
  json["gauges"] = json_of(gauges);
  json["fault_latency"] = json_of(fault_latency);
  json["regions"] = Json::array();
  for (const RegionMetrics& region : regions) json["regions"].push_back(json_of(region));
  json["policies"] = Json::array();
  for (const PolicyMetrics& policy : policies) json["policies"].push_back(json_of(policy));
  return json.dump({.is_as_added = true});
}

const std::vector<MetricInfo>& metric_list() {
  static const std::vector<MetricInfo> list = {
#define OUTCORE_INFO(name, unit, help) {#name, unit, help, true},
      OUTCORE_COUNTERS(OUTCORE_INFO)
#undef OUTCORE_INFO
#define OUTCORE_INFO(name, unit, help) {#name, unit, help, false},
          OUTCORE_GAUGES(OUTCORE_INFO)
#undef OUTCORE_INFO
  };
  return list;
}

}  // namespace outcore
