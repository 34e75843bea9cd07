// Metrics: what was counted, as dicts with the names of outcore/metrics.h.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "outcore/metrics.h"

namespace outcore::python {

// Text that may hold any bytes, as file names do (surrogateescape).
nanobind::str text_of(const std::string& text);

nanobind::dict dict_of(const RegionMetrics& metrics);
// Counters and gauges side by side, the latency's percentiles, and a list of regions.
nanobind::dict dict_of(const Metrics& metrics);

// Adds metric_list(), system_facts(), default_budget() and version().
void add_facts(nanobind::module_& m);

}  // namespace outcore::python
