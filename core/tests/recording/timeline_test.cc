// Timeline and HeatMap: however long a run is, nothing that was counted is lost.
#include "core/recording/timeline.h"
#include "core/tests/recording/heat_cells.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace outcore::recording {
namespace {

using base::Json;

double sum_of(const Json& values) {
  double sum = 0;
  for (const Json& value : values) sum += value.as<double>().value_or(NAN);
  return sum;
}

Timeline::Moment moment(uint64_t n) {
  Timeline::Moment now;
  now.counters.fills = 3 * n;
  now.counters.prefetch_fills = n;
  now.counters.fault_ns = n * 1'000'000;
  now.counters.read_bytes = n * 4096;
  now.counters.written_bytes = n * 512;
  now.counters.evictions = 2 * n;
  now.counters.refaults = n;
  now.used_bytes = 1000 + n;
  now.budget_bytes = 1 << 20;
  return now;
}

void expect_sums(const Json& json, uint64_t n) {
  const auto count = static_cast<double>(n);
  EXPECT_NEAR(sum_of(json["fills"]), 4 * count, 1e-6);
  EXPECT_NEAR(sum_of(json["stalled_s"]), count * 1e-3, 1e-6);
  EXPECT_NEAR(sum_of(json["read_bytes"]), 4096 * count, 1e-6);
  EXPECT_NEAR(sum_of(json["written_bytes"]), 512 * count, 1e-6);
  EXPECT_NEAR(sum_of(json["evictions"]), 2 * count, 1e-6);
  EXPECT_NEAR(sum_of(json["refaults"]), count, 1e-6);
}

TEST(Timeline, OfARunThatHasJustBegunHasNoStep) {
  const Json json = Timeline().to_json();
  EXPECT_EQ(json["fills"].size(), 0u);
  EXPECT_EQ(json["used_bytes"].size(), 0u);
}

TEST(Timeline, StepsThatNobodySawAtTheBeginningHaveTheBudget) {
  Timeline timeline;
  timeline.note(3.5, moment(1));  // many steps, and the first look
  const Json json = timeline.to_json();
  ASSERT_GT(json["budget_bytes"].size(), 1u);
  for (const Json& budget : json["budget_bytes"])
    EXPECT_EQ(budget.as<uint64_t>().value_or(0), moment(1).budget_bytes);
  expect_sums(json, 1);
}

TEST(Timeline, KeepsItsSumsHoweverOftenItsStepsAreDoubled) {
  for (const double length : {0.05, 1.0, 23.9, 24.0, 24.1, 100.0, 5000.0, 1e6}) {
    Timeline timeline;
    uint64_t n = 0;
    for (double at_s = 0; at_s < length; at_s += length / 3000)
      if (timeline.is_due(at_s)) timeline.note(at_s, moment(++n));
    timeline.note(length, moment(++n));
    const Json json = timeline.to_json();
    expect_sums(json, n);
    const double step = json.value("step_s", 0.0);
    const double steps = static_cast<double>(json["fills"].size());
    EXPECT_LE(steps, Timeline::kStepsMax + 1) << length;
    // All of the run is told of, and little that comes after it.
    EXPECT_GE(steps * step, length - 1e-6) << length;
    EXPECT_LE((steps - 2) * step, length) << length;
    for (const char* const name : {"stalled_s", "read_bytes", "used_bytes", "budget_bytes"})
      EXPECT_EQ(json[name].size(), json["fills"].size()) << name;
    EXPECT_EQ(json["used_bytes"].items().back().as<uint64_t>(), 1000 + n);
  }
}

TEST(Timeline, WhatHappenedWhileNobodyLookedIsToldOfTheLastStep) {
  Timeline timeline;
  timeline.note(0.1, moment(1));
  timeline.note(1.05, moment(11));
  const Json json = timeline.to_json();
  const Json::Array& fills = json["fills"].items();
  ASSERT_EQ(fills.size(), 10u);
  EXPECT_EQ(fills.front().as<double>(), 4);
  EXPECT_EQ(fills.back().as<double>(), 40);
  EXPECT_EQ(sum_of(json["fills"]), 44);
  EXPECT_EQ(json["used_bytes"].items()[5].as<uint64_t>(), 1001u) << "as it was before";
}

TEST(Timeline, IsDueOncePerStep) {
  Timeline timeline;
  EXPECT_FALSE(timeline.is_due(0));
  EXPECT_FALSE(timeline.is_due(0.099));
  EXPECT_TRUE(timeline.is_due(0.1));
  timeline.note(0.1, moment(1));
  EXPECT_FALSE(timeline.is_due(0.15));
  EXPECT_TRUE(timeline.is_due(0.2));
}

TEST(Timeline, ACounterThatFallsIsToldAsNothing) {
  Timeline timeline;
  timeline.note(0.1, moment(5));
  timeline.note(0.2, moment(3));
  EXPECT_EQ(sum_of(timeline.to_json()["fills"]), 20);
}

TEST(HeatMap, KeepsItsSumsHoweverOftenItsColumnsAreDoubled) {
  constexpr uint64_t kBytes = 1 << 30;
  for (const double length : {0.01, 5.99, 6.0, 6.01, 1000.0, 1e6}) {
    HeatMap map;
    std::mt19937_64 random(1);
    double wanted[3] = {};
    for (int i = 0; i <= 3000; ++i) {
      const auto kind = static_cast<HeatMap::Kind>(random() % 3);
      const double weight = static_cast<double>(1 << random() % 4);
      map.note(kind, length * i / 3000, random() % kBytes, weight);
      wanted[kind] += weight;
    }
    const Json json = map.to_json(length, kBytes);
    EXPECT_EQ(heat_total(json, "fills"), wanted[HeatMap::kFills]) << length;
    EXPECT_EQ(heat_total(json, "evictions"), wanted[HeatMap::kEvictions]) << length;
    EXPECT_EQ(heat_total(json, "refaults"), wanted[HeatMap::kRefaults]) << length;
    const double told = json.value("seconds", 0.0);
    EXPECT_GE(told, length - 1e-6);
    EXPECT_LE(json.value("columns", uint64_t{999}), uint64_t{HeatMap::kColumns});
  }
}

TEST(HeatMap, EachEventIsInTheColumnOfItsTimeAndTheRowOfItsOffset) {
  constexpr uint64_t kBytes = 64 << 16;
  HeatMap map;
  for (uint64_t i = 0; i < 64; ++i)  // a diagonal of 1000 s
    map.note(HeatMap::kFills, 1000.0 * static_cast<double>(i) / 64, i << 16, 1);
  const Json json = map.to_json(1000, kBytes);
  const std::vector<HeatCell> cells = heat_cells(json, "fills");
  ASSERT_EQ(cells.size(), 64u);
  EXPECT_EQ(json.value("bytes", uint64_t{0}), kBytes);
  const double column_s = json.value("seconds", 0.0) / json.value("columns", 1.0);
  for (const HeatCell& cell : cells) {
    const double at_s = 1000.0 * static_cast<double>(cell.row) / 64;
    EXPECT_EQ(static_cast<double>(cell.column), std::floor(at_s / column_s)) << cell.row;
  }
}

TEST(HeatMap, RowsAreOfWhatIsTouchedAndNotOfSpaceThatIsNeverUsed) {
  constexpr uint64_t kSpace = uint64_t{1} << 40;
  HeatMap map;
  for (uint64_t i = 0; i < 1000; ++i) map.note(HeatMap::kFills, 0, i << 16, 1);
  const Json json = map.to_json(0, kSpace);
  EXPECT_EQ(heat_total(json, "fills"), 1000);
  EXPECT_GT(heat_cells(json, "fills").size(), 30u);
  EXPECT_LE(json.value("bytes", uint64_t{0}), uint64_t{128} << 20);
}

TEST(HeatMap, ASmallFileEndsWhereItEndsAndALateOffsetFits) {
  HeatMap map;
  map.note(HeatMap::kFills, 0, 77, 1);
  EXPECT_EQ(map.to_json(0, 10 * 4096).value("rows", uint64_t{0}), 10u);
  EXPECT_EQ(map.to_json(0, 0).value("rows", uint64_t{0}), 1u);
  map.note(HeatMap::kFills, 0, uint64_t{1} << 50, 1);
  const Json json = map.to_json(0, 4096);
  EXPECT_EQ(heat_total(json, "fills"), 2);
  EXPECT_EQ(json.value("columns", uint64_t{0}), 1u);
}

}  // namespace
}  // namespace outcore::recording
