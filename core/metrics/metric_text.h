// Metric text: metrics as text for people. Any thread; not on the fault path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace outcore::metrics {

// The value with its unit: "1.5 GiB", "12.3 ms", "1,234 pages"; a plain count has no unit.
std::string format_value(uint64_t value, std::string_view unit);

// The whole text of docs/reference/metrics.md.
std::string metric_table_markdown();

}  // namespace outcore::metrics
