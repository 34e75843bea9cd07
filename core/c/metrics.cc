// Metrics and texts of the C API. See outcore.h.
#include "outcore/metrics.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>

#include "core/base/json.h"
#include "core/c/handles.h"
#include "core/c/outcome.h"
#include "core/c/sized_struct.h"
#include "core/c/texts.h"
#include "outcore/outcore.h"

namespace outcore::c {
namespace {

// Every metric of the list is a field of the struct (otherwise the copies below do not compile),
// and the struct has no other. New metrics are added at its end.
constexpr size_t kMetricCount = 0
#define OUTCORE_ONE(name, unit, help) +1
    OUTCORE_COUNTERS(OUTCORE_ONE) OUTCORE_GAUGES(OUTCORE_ONE);
#undef OUTCORE_ONE
static_assert(OC_LATENCY_BUCKETS == LatencyHistogram::kBuckets);
static_assert(sizeof(oc_metric_values) ==
                  sizeof(size_t) + (kMetricCount + OC_LATENCY_BUCKETS) * sizeof(uint64_t),
              "oc_metric_values and the lists of metrics.h must name the same metrics");
constexpr size_t kMetricValuesBytes = 8 + (22 + 6 + 40) * 8;  // of release 0.1

void copy(const Counters& from, oc_metric_values* into) {
#define OUTCORE_COPY(name, unit, help) into->name = from.name;
  OUTCORE_COUNTERS(OUTCORE_COPY)
#undef OUTCORE_COPY
}

void copy(const Gauges& from, oc_metric_values* into) {
#define OUTCORE_COPY(name, unit, help) into->name = from.name;
  OUTCORE_GAUGES(OUTCORE_COPY)
#undef OUTCORE_COPY
}

int check(const char* function, const oc_metric_values* values) {
  if (values == nullptr) return fail_null(function, "values");
  if (values->struct_bytes >= kMetricValuesBytes) return 0;
  return fail(EINVAL, std::string(function) + ": values->struct_bytes is " +
                          std::to_string(values->struct_bytes) +
                          ": start the struct with oc_metric_values_init()");
}

std::string info_json() {
  base::Json info = {{"version", version()}, {"system", base::Json::array()}};
  for (const SystemFact& fact : system_facts())
    info["system"].push_back({{"name", fact.name},
                              {"available", fact.is_available},
                              {"detail", fact.detail},
                              {"remedy", fact.remedy}});
  const auto [bytes, why] = default_budget();
  info["default_budget"] = {{"bytes", bytes}, {"why", why}};
  return info.dump({.is_as_added = true});
}

}  // namespace
}  // namespace outcore::c

using namespace outcore::c;

int oc_metrics(const oc_runtime* runtime, oc_metric_values* values) {
  if (runtime == nullptr) return fail_null("oc_metrics", "runtime");
  return guarded("oc_metrics", [&] {
    if (const int refused = check("oc_metrics", values); refused != 0) return refused;
    const outcore::Metrics metrics = runtime->runtime.metrics();
    oc_metric_values all{};
    copy(metrics.counters, &all);
    copy(metrics.gauges, &all);
    std::copy(metrics.fault_latency.count.begin(), metrics.fault_latency.count.end(),
              std::begin(all.fault_latency));
    give_struct(all, values);
    return 0;
  });
}

int oc_region_metrics(const oc_region* region, oc_metric_values* values) {
  if (region == nullptr) return fail_null("oc_region_metrics", "region");
  return guarded("oc_region_metrics", [&] {
    if (const int refused = check("oc_region_metrics", values); refused != 0) return refused;
    const outcore::RegionMetrics metrics = region->region.metrics();
    oc_metric_values all{};
    copy(metrics.counters, &all);
    all.used_bytes = metrics.resident_bytes;
    all.degraded = metrics.is_degraded ? 1 : 0;
    give_struct(all, values);
    return 0;
  });
}

int oc_metrics_json(const oc_runtime* runtime, char* buffer, size_t size_bytes,
                    size_t* needed_bytes) {
  if (runtime == nullptr) return fail_null("oc_metrics_json", "runtime");
  return guarded("oc_metrics_json", [&] {
    return give_text("oc_metrics_json", runtime->runtime.metrics().to_json(), buffer, size_bytes,
                     needed_bytes);
  });
}

int oc_describe_options(const oc_runtime* runtime, char* buffer, size_t size_bytes,
                        size_t* needed_bytes) {
  if (runtime == nullptr) return fail_null("oc_describe_options", "runtime");
  return guarded("oc_describe_options", [&] {
    return give_text("oc_describe_options", runtime->runtime.describe_options(), buffer, size_bytes,
                     needed_bytes);
  });
}

int oc_info_json(char* buffer, size_t size_bytes, size_t* needed_bytes) {
  return guarded("oc_info_json", [&] {
    return give_text("oc_info_json", info_json(), buffer, size_bytes, needed_bytes);
  });
}
