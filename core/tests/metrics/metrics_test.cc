#include "outcore/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "core/base/json.h"
#include "core/metrics/metric_text.h"
#include "tests/places.h"

namespace outcore::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LatencyHistogram, HasNoPercentileWithoutFaults) {
  EXPECT_EQ(LatencyHistogram{}.percentile_ns(0.5), 0u);
}

TEST(LatencyHistogram, APercentileIsTheUpperEdgeOfItsBucket) {
  LatencyHistogram h;
  h.count[3] = 50;
  h.count[10] = 49;
  h.count[20] = 1;
  EXPECT_EQ(h.percentile_ns(0), 15u);
  EXPECT_EQ(h.percentile_ns(0.5), 15u);
  EXPECT_EQ(h.percentile_ns(0.51), 2047u);
  EXPECT_EQ(h.percentile_ns(0.99), 2047u);
  EXPECT_EQ(h.percentile_ns(0.991), (2u << 20) - 1);
  EXPECT_EQ(h.percentile_ns(1), (2u << 20) - 1);
}

TEST(LatencyHistogram, SharesBeyondOneAreAllAndTheLastBucketHasAnEdge) {
  LatencyHistogram h;
  h.count[LatencyHistogram::kBuckets - 1] = 1;
  EXPECT_EQ(h.percentile_ns(7), (uint64_t{1} << 40) - 1);
  EXPECT_EQ(h.percentile_ns(-1), (uint64_t{1} << 40) - 1);
}

TEST(LatencyHistogram, CountsTooLargeForADoubleStayInside) {
  LatencyHistogram h;
  h.count[5] = (uint64_t{1} << 60) + 1;
  EXPECT_EQ(h.percentile_ns(1), 63u);
}

TEST(MetricList, HasEveryNameOnceWithUnitAndHelp) {
  std::set<std::string_view> names;
  for (const MetricInfo& metric : metric_list()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_FALSE(metric.unit.empty() || metric.help.empty()) << metric.name;
  }
  EXPECT_EQ(names.size(), (sizeof(Counters) + sizeof(Gauges)) / sizeof(uint64_t));
}

Metrics example() {
  Metrics m;
  m.counters.faults = 1234567;
  m.counters.read_bytes = uint64_t{3} << 29;
  m.counters.wait_for_page_ns = 12'345'678;
  m.gauges.budget_bytes = 1 << 20;
  m.fault_latency.count[13] = 10;
  RegionMetrics region;
  region.uri = "file:/data/a \"b\"";
  region.address = 0x7f0000000000;
  region.size_bytes = uint64_t{1} << 40;
  region.page_bytes = 65536;
  region.fetches.clusters = {60, 0, 0, 0, 30, 10, 0, 0};
  region.fetches.left_out = 200;
  region.fetches.left_out_used = 186;
  region.access = "read-write", region.delivery = "in-thread", region.frames = "shared";
  region.is_degraded = true;
  region.counters.fills = 4242;
  region.fetches.clusters = {60, 0, 0, 0, 30, 10, 0, 0};
  region.fetches.left_out = 200;
  region.fetches.left_out_used = 186;
  m.regions = {region, region};
  m.policies = {{"s3-fifo", 3, 70, 60, {{"s3-fifo", 1000}, {"di-mmap", 1140}, {"fifo", 1380}}, 700},
                {"fifo:cool=0%", 0, 0, 0, {}, 0}};
  return m;
}

TEST(Metrics, JsonIsOneLineWithEveryMetric) {
  const std::string text = example().to_json();
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const auto json = base::Json::parse_or_null(text);
  for (const MetricInfo& metric : metric_list())
    EXPECT_TRUE(json[metric.is_counter ? "counters" : "gauges"].contains(metric.name))
        << metric.name;
  EXPECT_EQ(json["counters"]["faults"], 1234567);
  EXPECT_EQ(json["gauges"]["budget_bytes"], 1 << 20);
  EXPECT_EQ(json["fault_latency"]["p50_ns"], 16383);
  EXPECT_EQ(json["fault_latency"]["buckets"].size(), LatencyHistogram::kBuckets);
  ASSERT_EQ(json["regions"].size(), 2u);
  EXPECT_EQ(json["regions"][0]["uri"], "file:/data/a \"b\"");
  EXPECT_EQ(json["regions"][0]["size_bytes"], uint64_t{1} << 40);
  EXPECT_EQ(json["regions"][1]["is_degraded"], true);
  EXPECT_EQ(json["regions"][1]["counters"]["fills"], 4242);
  EXPECT_EQ(json["regions"][1]["fetches"]["clusters"][4], 30);
  EXPECT_EQ(json["regions"][1]["fetches"]["left_out"], 200);
}

TEST(Metrics, FetchesAreOneLineARegion) {
  const Metrics metrics = example();
  EXPECT_EQ(metrics.regions[0].fetches.to_text(4096),
            "4 KiB 60 %, 64 KiB 30 %, 128 KiB 10 %; 7 % of what came along unused");
  EXPECT_EQ(FetchMetrics{}.to_text(4096), "");
  EXPECT_THAT(metrics.to_text(), HasSubstr("a miss brought in 64 KiB 60 %"));
}

// Counters that another process publishes may be forged.
TEST(Metrics, FetchesThatCannotBeAreAText) {
  FetchMetrics forged;
  forged.clusters[0] = forged.clusters[1] = uint64_t{1} << 63;
  EXPECT_EQ(forged.to_text(4096), "4 KiB 50 %, 8 KiB 50 %");
  forged.clusters.fill(~uint64_t{0});
  forged.left_out = ~uint64_t{0};
  EXPECT_NE(forged.to_text(4096).find("100 % of what came along unused"), std::string::npos)
      << forged.to_text(4096);
}

TEST(Metrics, WhatTheAutomaticPolicyHasSeenIsOneLine) {
  const Metrics metrics = example();
  EXPECT_EQ(
      metrics.policies[0].to_text(),
      "s3-fifo (di-mmap would cost 1.14 ×, fifo 1.38 ×; with twice the memory s3-fifo 0.70 ×), "
      "3 changes");
  EXPECT_EQ(metrics.policies[1].to_text(), "");
  EXPECT_EQ((PolicyMetrics{"fifo", 1, 0, 0, {{"s3-fifo", 0}, {"fifo", 0}}, 0}.to_text()),
            "fifo, 1 change");
  EXPECT_THAT(metrics.to_text(), HasSubstr("policy s3-fifo (di-mmap would"));
  const auto json = base::Json::parse_or_null(metrics.to_json());
  ASSERT_EQ(json["policies"].size(), 2u);
  EXPECT_EQ(json["policies"][0]["policy"], "s3-fifo");
  EXPECT_EQ(json["policies"][0]["changes"], 3);
  EXPECT_EQ(json["policies"][0]["probes_touched"], 60);
  EXPECT_EQ(json["policies"][0]["candidates"][1]["policy"], "di-mmap");
  EXPECT_EQ(json["policies"][0]["candidates"][1]["cost"], 1140);
  EXPECT_EQ(json["policies"][0]["cost_of_twice"], 700);
  EXPECT_EQ(json["policies"][1]["candidates"].size(), 0u);
}

TEST(Metrics, JsonWithoutRegionsHasAnEmptyList) {
  EXPECT_EQ(base::Json::parse_or_null(Metrics{}.to_json())["regions"], base::Json::array());
}

TEST(Metrics, AFileNameThatIsNoTextDoesNotSpoilTheJson) {
  Metrics m = example();
  m.regions[0].uri = "file:/x\xff\xfe";
  EXPECT_THAT(base::Json::parse_or_null(m.to_json())["regions"][0]["uri"].as<std::string>().value(),
              HasSubstr("file:/x"));
}

TEST(Metrics, TextNamesEveryMetricWithPeoplesUnits) {
  const std::string text = example().to_text();
  for (const MetricInfo& metric : metric_list())
    EXPECT_THAT(text, HasSubstr(std::string(metric.name)));
  EXPECT_THAT(text, HasSubstr("1,234,567"));
  EXPECT_THAT(text, HasSubstr("1.5 GiB"));
  EXPECT_THAT(text, HasSubstr("12.3 ms"));
  EXPECT_THAT(text, HasSubstr("< 16.4 µs"));
  EXPECT_THAT(text, HasSubstr("degraded"));
  EXPECT_THAT(text, HasSubstr("4,242"));
}

TEST(Metrics, TextLinesOfATableAreEquallyWide) {
  const std::string text = example().to_text();
  const size_t first = text.find('\n'), second = text.find('\n', first + 1);
  EXPECT_EQ(first, second - first - 1);
}

TEST(Metrics, TextWithoutFaultsAndRegionsHasNoEmptyTables) {
  EXPECT_THAT(Metrics{}.to_text(), Not(HasSubstr("fault latency")));
  EXPECT_THAT(Metrics{}.to_text(), Not(HasSubstr("delivery")));
}

TEST(MetricText, ValuesHaveTheirUnit) {
  EXPECT_EQ(format_value(0, "count"), "0");
  EXPECT_EQ(format_value(999, "count"), "999");
  EXPECT_EQ(format_value(1000, "count"), "1,000");
  EXPECT_EQ(format_value(UINT64_MAX, "count"), "18,446,744,073,709,551,615");
  EXPECT_EQ(format_value(1, "pages"), "1 page");
  EXPECT_EQ(format_value(1234, "pages"), "1,234 pages");
  EXPECT_EQ(format_value(1, "regions"), "1 region");
  EXPECT_EQ(format_value(4096, "bytes"), "4 KiB");
  EXPECT_EQ(format_value(999, "nanoseconds"), "999 ns");
  EXPECT_EQ(format_value(1500, "nanoseconds"), "1.5 µs");
  EXPECT_EQ(format_value(90'000'000'000, "nanoseconds"), "90.0 s");
}

// The page of the documentation is generated from the list. To write it again:
// OUTCORE_UPDATE_DOCS=1.
TEST(MetricText, TheDocumentationIsUpToDate) {
  const std::string path = scene::source_folder() + "/docs/reference/metrics.md";
  if (std::getenv("OUTCORE_UPDATE_DOCS") != nullptr) std::ofstream(path) << metric_table_markdown();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, metric_table_markdown()) << "run this test with OUTCORE_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace outcore::metrics
