// MetricFamilies: metrics in the form of Prometheus, families by name in the order in which they
// first come. A value; one thread.
#pragma once

#include <prometheus/metric_family.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outcore/metrics.h"

namespace outcore::cli {

using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

// As Prometheus' conventions have it: base units, which the name ends with, and _total.
std::string exported_name(const MetricInfo& metric);
double exported_value(const MetricInfo& metric, uint64_t value);

class MetricFamilies {
 public:
  void add(const std::string& name, std::string_view help, bool is_counter,
           const MetricLabels& labels, double value);
  // `sum_ns`: of all that the histogram counts.
  void add_latency(const LatencyHistogram& latency, uint64_t sum_ns, const MetricLabels& labels);
  std::vector<prometheus::MetricFamily> take() { return std::move(all_); }

 private:
  prometheus::MetricFamily& family(const std::string& name, std::string_view help,
                                   prometheus::MetricType type);

  std::vector<prometheus::MetricFamily> all_;
  std::map<std::string, size_t> index_;
};

}  // namespace outcore::cli
