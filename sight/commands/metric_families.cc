#include "sight/commands/metric_families.h"

#include <limits>

namespace outcore::cli {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

std::string exported_name(const MetricInfo& metric) {
  std::string name = "outcore_" + std::string(metric.name);
  if (metric.unit == "nanoseconds") {
    const size_t unit = name.rfind("_ns");
    if (unit != std::string::npos) name.replace(unit, 3, "_seconds");
  } else if (metric.unit == "pages") {
    name += "_pages";
  }
  return metric.is_counter ? name + "_total" : name;
}

double exported_value(const MetricInfo& metric, uint64_t value) {
  const auto number = static_cast<double>(value);
  return metric.unit == "nanoseconds" ? number * 1e-9 : number;
}

void MetricFamilies::add(const std::string& name, std::string_view help, bool is_counter,
                         const MetricLabels& labels, double value) {
  ClientMetric metric;
  metric.label = labels;
  (is_counter ? metric.counter.value : metric.gauge.value) = value;
  family(name, help, is_counter ? MetricType::Counter : MetricType::Gauge)
      .metric.push_back(std::move(metric));
}

void MetricFamilies::add_latency(const LatencyHistogram& latency, uint64_t sum_ns,
                                 const MetricLabels& labels) {
  ClientMetric metric;
  metric.label = labels;
  uint64_t count = 0;
  // Below a microsecond and above a minute nothing is told apart.
  constexpr size_t kFirst = 9, kLast = 36;
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    count += latency.count[i];
    if (i >= kFirst && i <= kLast)
      metric.histogram.bucket.push_back({count, static_cast<double>(uint64_t{2} << i) / 1e9});
  }
  metric.histogram.bucket.push_back({count, std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = static_cast<double>(sum_ns) * 1e-9;
  family("outcore_fault_duration_seconds",
         "how long faults took, from the entry of the handler, and calls waited for pages",
         MetricType::Histogram)
      .metric.push_back(std::move(metric));
}

MetricFamily& MetricFamilies::family(const std::string& name, std::string_view help,
                                     MetricType type) {
  const auto [found, is_new] = index_.try_emplace(name, all_.size());
  if (is_new) all_.push_back({name, std::string(help), type, {}});
  return all_[found->second];
}

}  // namespace outcore::cli
