#include "core/metrics/metric_text.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <vector>

#include "core/base/units.h"
#include "outcore/metrics.h"

namespace outcore::metrics {
namespace {

std::string with_commas(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string format_time(uint64_t ns) {
  static constexpr const char* kUnits[] = {"ns", "µs", "ms", "s"};
  double number = static_cast<double>(ns);
  size_t unit = 0;
  while (number >= 1000 && unit + 1 < std::size(kUnits)) number /= 1000, ++unit;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", number, kUnits[unit]);
  return text;
}

// The number of terminal columns: continuation bytes of UTF-8 characters need none.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Aligns a table: the first column to the left, the others to the right.
std::string align(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(width[i] - width_of(row[i]), ' ');
      text += i == 0 ? row[i] + blanks : "  " + blanks + row[i];
    }
    text += '\n';
  }
  return text;
}

std::string format_latency(const LatencyHistogram& latency) {
  std::vector<std::vector<std::string>> rows;
  const std::pair<const char*, double> shares[] = {
      {"half of the faults", 0.5}, {"90 %", 0.9}, {"99 %", 0.99}, {"99.9 %", 0.999}, {"all", 1}};
  for (const auto& [name, share] : shares)
    rows.push_back({name, "< " + format_time(latency.percentile_ns(share))});
  return align(rows);
}

std::string format_regions(const std::vector<RegionMetrics>& regions) {
  std::vector<std::vector<std::string>> rows = {{"region", "size", "page", "resident", "access",
                                                 "delivery", "frames", "fills", "written back",
                                                 "state"}};
  for (const RegionMetrics& r : regions)
    rows.push_back({r.uri, base::format_bytes(r.size_bytes), base::format_bytes(r.page_bytes),
                    base::format_bytes(r.resident_bytes), r.access, r.delivery, r.frames,
                    with_commas(r.counters.fills + r.counters.prefetch_fills),
                    base::format_bytes(r.counters.written_bytes),
                    r.is_degraded       ? "degraded"
                    : r.is_unreplicated ? "unreplicated"
                                        : "good"});
  std::string text = align(rows);
  for (const RegionMetrics& r : regions)
    if (const std::string fetches = r.fetches.to_text(r.page_bytes); !fetches.empty())
      text += r.uri + ": a miss brought in " + fetches + "\n";
  return text;
}

// Other processes' counters may be any numbers: their sums, and products, wrap.
std::string percent(uint64_t part, double whole) {
  const double share = whole > 0 ? static_cast<double>(part) / whole : 0;
  return std::to_string(static_cast<int>(share * 100 + 0.5)) + " %";
}

}  // namespace

std::string format_value(uint64_t value, std::string_view unit) {
  if (unit == "bytes") return base::format_bytes(value);
  if (unit == "nanoseconds") return format_time(value);
  if (unit == "count") return with_commas(value);
  const std::string_view one =
      value == 1 && unit.ends_with('s') ? unit.substr(0, unit.size() - 1) : unit;
  return with_commas(value) + " " + std::string(one);
}

std::string metric_table_markdown() {
  std::string text =
      "# Metrics\n\n"
      "What happened in a runtime, counted from its start. The names are the same in C++\n"
      "(`Runtime::metrics()`), in JSON and in `outcore info --metrics`. Counters only grow; gauges "
      "are\n"
      "values of now. A region has the counters of its store's pages: regions that share a store "
      "share\n"
      "them. This page is made from the list in `include/outcore/metrics.h`.\n\n"
      "`fault_latency` counts faults by how long they took, from the entry of the handler, and "
      "`call_waits`\n"
      "by how long the call waited: bucket *i* those of 2^*i* … 2^(*i*+1) − 1 nanoseconds. "
      "`p50_ns` and\n"
      "so on are upper edges of buckets. `fault_ns` and `call_wait_ns` together are all that "
      "threads lost by\n"
      "waiting for pages: STALL of `outcore top`.\n";
  for (const bool is_counter : {true, false}) {
    text += is_counter ? "\n## Counters\n\n" : "\n## Gauges\n\n";
    text += "| name | unit | what it counts |\n| --- | --- | --- |\n";
    for (const MetricInfo& metric : metric_list())
      if (metric.is_counter == is_counter)
        text += "| `" + std::string(metric.name) + "` | " + std::string(metric.unit) + " | " +
                std::string(metric.help) + " |\n";
  }
  return text;
}

}  // namespace outcore::metrics

namespace outcore {

std::string FetchMetrics::to_text(uint64_t page_bytes) const {
  double all = 0;
  for (const uint64_t count : clusters) all += static_cast<double>(count);
  std::string text;
  for (size_t i = 0; i < kSizes; ++i) {
    const bool is_little = static_cast<double>(clusters[i]) * 200 < all;  // half a percent
    if (is_little || clusters[i] == 0) continue;
    if (!text.empty()) text += ", ";
    text += base::format_bytes(page_bytes << i) + " " + metrics::percent(clusters[i], all);
  }
  if (left_out != 0)
    text += "; " +
            metrics::percent(left_out - std::min(left_out, left_out_used),
                             static_cast<double>(left_out)) +
            " of what came along unused";
  return text;
}

std::string PolicyMetrics::to_text() const {
  if (candidates.empty()) return "";
  const auto factor = [](uint64_t cost, uint64_t of) {
    char text[32];
    std::snprintf(text, sizeof text, " %.2f ×",
                  static_cast<double>(cost) / static_cast<double>(of));
    return std::string(text);
  };
  const Candidate* live = &candidates[0];
  for (const Candidate& candidate : candidates)
    if (candidate.policy == policy) live = &candidate;
  std::string text = policy;
  if (live->cost != 0) {
    const char* separator = " (";
    for (const Candidate& candidate : candidates) {
      if (&candidate == live) continue;
      text += separator + candidate.policy + (separator[0] == ' ' ? " would cost" : "") +
              factor(candidate.cost, live->cost);
      separator = ", ";
    }
    text +=
        "; with twice the memory " + candidates[0].policy + factor(cost_of_twice, live->cost) + ")";
  }
  return text + ", " + std::to_string(changes) + (changes == 1 ? " change" : " changes");
}

std::string Metrics::to_text() const {
  std::vector<std::vector<std::string>> rows;
#define OUTCORE_ROW(name, unit, help) \
  rows.push_back({#name, metrics::format_value(gauges.name, unit)});
  OUTCORE_GAUGES(OUTCORE_ROW)
#undef OUTCORE_ROW
#define OUTCORE_ROW(name, unit, help) \
  rows.push_back({#name, metrics::format_value(counters.name, unit)});
  OUTCORE_COUNTERS(OUTCORE_ROW)
#undef OUTCORE_ROW
  std::string text = metrics::align(rows);
  if (fault_latency.percentile_ns(1) != 0)
    text += "\nfault latency\n" + metrics::format_latency(fault_latency);
  if (!regions.empty()) text += "\n" + metrics::format_regions(regions);
  for (const PolicyMetrics& policy : policies)
    if (const std::string line = policy.to_text(); !line.empty()) text += "policy " + line + "\n";
  return text;
}

}  // namespace outcore
