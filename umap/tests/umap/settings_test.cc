// UMap's variables and functions for settings, and what they are among Outcore's options.
#include "umap/settings/settings.h"

#include <gmock/gmock.h>

#include <map>
#include <vector>

namespace outcore::umapped {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

struct Read {
  explicit Read(const Variables& variables)
      : settings(
            [&](const char* name) -> const char* {
              const auto found = variables.find(name);
              return found == variables.end() ? nullptr : found->second.c_str();
            },
            "", [this](const std::string& line) { lines.push_back(line); }) {}

  std::vector<std::string> lines;
  Settings settings;
};

TEST(UmapSettings, WithoutVariablesAreUMapsDefaults) {
  const Read read({});
  EXPECT_EQ(read.settings.get(Setting::kPageBytes), 4096U);
  EXPECT_EQ(read.settings.get(Setting::kReadAheadPages), 0U);
  EXPECT_EQ(read.settings.get(Setting::kLowPercent), 70U);
  EXPECT_EQ(read.settings.get(Setting::kHighPercent), 90U);
  EXPECT_EQ(read.settings.get(Setting::kFaultEvents), 256U);
  EXPECT_GE(read.settings.get(Setting::kFillers), 1U);
  const RuntimeOptions options = read.settings.options();
  EXPECT_FALSE(options.budget_bytes.has_value()) << "Outcore's own defaults hold";
  EXPECT_FALSE(options.adapts_budget);
  EXPECT_FALSE(options.keepers.has_value() || options.prefetch_threads.has_value());
  EXPECT_FALSE(options.low_watermark.has_value() || options.readahead_bytes.has_value());
  EXPECT_TRUE(read.lines.empty());
}

TEST(UmapSettings, VariablesBecomeOptions) {
  const Read read({{"UMAP_PAGESIZE", "65536"},
                   {"UMAP_BUFSIZE", "1000"},
                   {"UMAP_READ_AHEAD", "16"},
                   {"UMAP_PAGE_FILLERS", "5"},
                   {"UMAP_PAGE_EVICTORS", "100000"},
                   {"UMAP_EVICT_HIGH_WATER_THRESHOLD", "80"},
                   {"UMAP_BUFADAPT_FREQ", "3"}});
  const RuntimeOptions options = read.settings.options();
  EXPECT_EQ(options.page_bytes, 65536U);
  EXPECT_EQ(options.budget_bytes, 65'536'000U);
  EXPECT_FALSE(options.adapts_budget) << "as a size is given";
  EXPECT_EQ(options.readahead_bytes, 16 * 65536U);
  EXPECT_EQ(options.prefetch_threads, 5U);
  EXPECT_EQ(options.event_threads, 5U);
  EXPECT_EQ(options.keepers, 256U) << "the most that there can be";
  EXPECT_EQ(options.high_watermark, 80U);
  EXPECT_EQ(options.low_watermark, 70U);
  EXPECT_EQ(read.settings.get(Setting::kEvictors), 100'000U);
}

TEST(UmapSettings, ABufferWithoutASizeMayFollowTheMemory) {
  const Variables variables{{"UMAP_BUFADAPT_FREQ", "3"}};
  const Read read(variables);
  EXPECT_TRUE(read.settings.options().adapts_budget);
}

TEST(UmapSettings, NoReadAheadIsAValueOfItsOwn) {
  const Variables variables{{"UMAP_READ_AHEAD", "0"}};
  const Read read(variables);
  EXPECT_EQ(read.settings.options().readahead_bytes, 0U);
}

TEST(UmapSettings, GarbageIsToldOnceEachAndTheDefaultHolds) {
  const Read read({{"UMAP_PAGESIZE", "12345"},
                   {"UMAP_BUFSIZE", "lots"},
                   {"UMAP_READ_AHEAD", "-1"},
                   {"UMAP_PAGE_FILLERS", "4x"},
                   {"UMAP_EVICT_LOW_WATER_THRESHOLD", "101"},
                   {"UMAP_MAX_FAULT_EVENTS", "99999999999999999999999"}});
  EXPECT_THAT(
      read.lines,
      ElementsAre(
          HasSubstr(
              "UMAP_PAGESIZE=12345: it is a power of two, from 4096 to 16777216; the default"),
          HasSubstr("UMAP_BUFSIZE=lots: it is a number of pages"), HasSubstr("UMAP_READ_AHEAD=-1"),
          HasSubstr("UMAP_PAGE_FILLERS=4x"), HasSubstr("LOW_WATER_THRESHOLD=101: it is a perc"),
          HasSubstr("UMAP_MAX_FAULT_EVENTS=9999")));
  const RuntimeOptions options = read.settings.options();
  EXPECT_EQ(options.page_bytes, 4096U);
  EXPECT_FALSE(options.budget_bytes.has_value() || options.low_watermark.has_value());
}

TEST(UmapSettings, NothingAndZeroAreNotSet) {
  const Read read({{"UMAP_PAGESIZE", ""}, {"UMAP_BUFSIZE", "0"}, {"UMAP_PAGE_FILLERS", "0"}});
  EXPECT_TRUE(read.lines.empty());
  EXPECT_FALSE(read.settings.options().budget_bytes.has_value());
}

TEST(UmapSettings, OutcoresOptionsTakePrecedenceAndTheProgramHasTheLastWord) {
  Read read({{"UMAP_PAGESIZE", "65536"},
             {"UMAP_BUFSIZE", "1000"},
             {"UMAP_PAGE_EVICTORS", "3"},
             {"OUTCORE_PAGE", "8k"},
             {"OUTCORE_BUDGET", "64M"},
             {"OUTCORE_KEEPERS", "2"}});
  EXPECT_EQ(read.settings.get(Setting::kPageBytes), 8192U);
  RuntimeOptions options = read.settings.options();
  EXPECT_EQ(options.page_bytes, 8192U);
  EXPECT_FALSE(options.budget_bytes.has_value() || options.keepers.has_value());
  ASSERT_TRUE(read.settings.set(Setting::kPageBytes, 16384).ok());
  ASSERT_TRUE(read.settings.set(Setting::kBufferPages, 100).ok());
  options = read.settings.options();
  EXPECT_EQ(options.page_bytes, 16384U);
  EXPECT_EQ(options.budget_bytes, 1'638'400U);
}

TEST(UmapSettings, AWatermarkOfTheProgramTakesPrecedenceOverOutcoresOptions) {
  Read read({{"OUTCORE_LOW_WATERMARK", "50"}, {"UMAP_EVICT_LOW_WATER_THRESHOLD", "60"}});
  EXPECT_FALSE(read.settings.options().low_watermark.has_value()) << "Outcore's option holds";
  ASSERT_TRUE(read.settings.set(Setting::kHighPercent, 80).ok());
  EXPECT_EQ(read.settings.options().high_watermark, 80U);
  ASSERT_TRUE(read.settings.set(Setting::kLowPercent, 40).ok());
  const RuntimeOptions options = read.settings.options();
  EXPECT_EQ(options.high_watermark, 80U);
  EXPECT_EQ(options.low_watermark, 40U);
}

TEST(UmapSettings, WhatIsOutOfRangeChangesNothing) {
  Read read({});
  EXPECT_EQ(read.settings.set(Setting::kPageBytes, 0).code(), EINVAL);
  EXPECT_EQ(read.settings.set(Setting::kBufferPages, 0).code(), EINVAL);
  EXPECT_EQ(read.settings.set(Setting::kHighPercent, 101).code(), EINVAL);
  EXPECT_THAT(read.settings.set(Setting::kPageBytes, 6000).message(),
              HasSubstr("set PAGESIZE to 6000: it is a power of two"));
  EXPECT_EQ(read.settings.get(Setting::kPageBytes), 4096U);
}

}  // namespace
}  // namespace outcore::umapped
