// One file or other store: everything that is counted of it.
#include <array>

#include "cli/assert.h"
#include "cli/text.h"
#include "sight/commands/columns.h"
#include "sight/commands/pages.h"

namespace outcore::cli {
namespace {

struct Count {
  const char* name;
  std::string_view unit;
  uint64_t all, lately;
};

std::vector<Count> counts_of(const StoreView& store) {
  return {
#define OUTCORE_COUNT(name, unit, help) \
  {#name, unit, store.now.counters.name, store.change.counters.name},
      OUTCORE_COUNTERS(OUTCORE_COUNT)
#undef OUTCORE_COUNT
  };
}

std::string number_text(double number, std::string_view unit) {
  if (unit == "bytes") return short_bytes(number);
  if (unit == "nanoseconds") return short_time(static_cast<uint64_t>(number));
  return short_count(number);
}

std::vector<Line> count_lines(const StoreView& store) {
  std::vector<Line> lines;
  lines.push_back({{format("%-24s %8s %8s", "COUNTED", "ALL", "EACH s"), Look::kReverse}});
  for (const Count& count : counts_of(store)) {
    const std::string rate = store.change.is_known()
                                 ? number_text(store.change.a_second(count.lately), count.unit)
                                 : "-";
    const std::string all = number_text(static_cast<double>(count.all), count.unit);
    lines.push_back({{format("%-24s %8s %8s", count.name, all.c_str(), rate.c_str()),
                      count.all == 0 ? Look::kDim : Look::kPlain}});
  }
  return lines;
}

// Of the interval, or of all faults and calls that waited if there were none lately.
std::vector<Line> latency_lines(const StoreView& store, size_t width, const Glyphs& glyphs) {
  LatencyHistogram shown = store.change.latency;
  const bool is_lately = shown.percentile_ns(1) != 0;
  if (!is_lately) shown = store.now.fault_latency;
  uint64_t most = 0, all = 0;
  size_t first = LatencyHistogram::kBuckets, end = 0;
  for (size_t i = 0; i < LatencyHistogram::kBuckets; ++i) {
    if (shown.count[i] == 0) continue;
    first = std::min(first, i), end = i + 1;
    most = std::max(most, shown.count[i]);
    all += shown.count[i];
  }
  CLI_CHECK(first < end || all == 0);
  CLI_CHECK(most <= all);
  std::vector<Line> lines;
  lines.push_back(
      {{fit(is_lately ? "WAITS THAT TOOK, lately" : "WAITS THAT TOOK, in all", width, glyphs),
        Look::kReverse}});
  if (all == 0) lines.push_back({{"none yet", Look::kDim}});
  for (size_t i = first; i < end; ++i) {
    const double share = share_of(shown.count[i], most);
    const size_t bar_width = width > 24 ? std::min<size_t>(width - 18, 50) : 6;
    lines.push_back({{format("< %6s ", short_time((uint64_t{2} << i) - 1).c_str())},
                     {bar(share, bar_width, glyphs)},
                     {format(" %5s", short_percent(share_of(shown.count[i], all)).c_str())}});
  }
  return lines;
}

Line beside(const Line& left, const Line& right, size_t width) {
  Line line = left;
  const size_t taken = columns_of(text_of(left));
  line.push_back({std::string(width > taken ? width - taken : 0, ' ')});
  line.insert(line.end(), right.begin(), right.end());
  return line;
}

}  // namespace

Page store_page(const ProcessView& process, const StoreView& store, const PageStyle& style) {
  static constexpr size_t kCountsWidth = 42, kGap = 2;
  const Glyphs& glyphs = style.glyphs;
  const RegionMetrics& now = store.now;
  Page page;
  page.head.push_back(
      {{cut_start(glyphs.shown(name_of(store)), style.width, glyphs), Look::kBold}});
  page.head.push_back({{"in process " + std::to_string(process.pid) + ", " +
                        glyphs.shown(process.facts.name) + ": " + now.access + ", " + now.delivery +
                        ", " + now.frames + " frames, pages of " + format_bytes(now.page_bytes)}});
  const double share = share_of(now.resident_bytes, now.size_bytes);
  const std::string here = format_bytes(now.resident_bytes) + " of " + format_bytes(now.size_bytes);
  if (now.frames == "buffer")
    page.head.push_back(
        {{format_bytes(now.size_bytes) + "; what is in memory of it is the buffer's"}});
  else
    page.head.push_back({{"here "},
                         {bar(share, style.width >= 100 ? 40 : 24, glyphs)},
                         {" " + here + ", " + short_percent(share), Look::kBold}});
  const std::string fetches = now.fetches.to_text(now.page_bytes);
  page.head.push_back({{"amplification "},
                       {short_ratio(amplification_of(store)), Look::kBold},
                       {fetches.empty() ? "" : "  a miss brings in " + fetches}});
  page.head.push_back(
      now.is_degraded
          ? Line{{"degraded: a write-back failed and has not succeeded since", Look::kBad}}
          : Line{});
  const std::vector<Line> counts = count_lines(store);
  const bool is_wide = style.width >= 76;
  const size_t right_width = is_wide ? style.width - kCountsWidth - kGap : style.width;
  const std::vector<Line> latency = latency_lines(store, right_width, glyphs);
  if (is_wide) {
    for (size_t i = 0; i < std::max(counts.size(), latency.size()); ++i)
      page.rows.push_back(beside(i < counts.size() ? counts[i] : Line{},
                                 i < latency.size() ? latency[i] : Line{}, kCountsWidth + kGap));
  } else {
    page.rows = latency;
    page.rows.push_back({});
    page.rows.insert(page.rows.end(), counts.begin(), counts.end());
  }
  return page;
}

}  // namespace outcore::cli
