#include "core/runtime/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>

#include "core/base/units.h"
#include "core/runtime/option_text.h"
#include "tests/places.h"

namespace outcore::runtime {
namespace {

TEST(OptionTable, NamesAreUniqueAndFitForAVariable) {
  std::set<std::string> names, fields;
  for (const Option& option : option_table()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(fields.insert(option.field).second) << option.field;
    EXPECT_EQ(option.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos);
    EXPECT_EQ(find_option(option.name), &option);
  }
  EXPECT_EQ(find_option("config"), nullptr) << "OUTCORE_CONFIG names the file";
  EXPECT_EQ(find_option("nonsense"), nullptr);
}

TEST(OptionTable, EveryOptionHasWordsForPeople) {
  for (const Option& option : option_table()) {
    EXPECT_FALSE(option.help.empty()) << option.name;
    EXPECT_FALSE(option.values.empty()) << option.name;
    EXPECT_FALSE(option.default_text.empty()) << option.name;
    EXPECT_EQ((option.help + option.values).find_first_of("|\n"), std::string::npos) << option.name;
  }
}

TEST(OptionTable, WhatIsWrittenCanBeReadAgain) {
  const EnvironmentLookup nothing = [](const char*) { return nullptr; };
  const std::function<os::MemoryAvailable()> available = [] {
    return os::MemoryAvailable{uint64_t{1} << 30, "here"};
  };
  Result<ResolvedOptions> all = resolve_options({}, nothing, "", available);
  ASSERT_TRUE(all.ok());
  all->budget_bytes = 12345678901, all->wait_ms_max = 61'001, all->page_bytes = 1 << 20;
  for (const Option& option : option_table()) {
    ResolvedOptions again = *all;
    std::string remark;
    const std::string text = option.write(*all);
    EXPECT_TRUE(option.read(text, {nothing, available}, &again, &remark).ok())
        << option.name << " " << text;
    EXPECT_EQ(option.write(again), text);
  }
  EXPECT_EQ(read_budget(write_bytes(12345678901), available, nullptr).value(), 12345678901u);
  all->adapts_budget = true, all->budget_max_bytes = 7 << 20;
  EXPECT_EQ(find_option("budget")->write(*all), "auto");
  for (const char* name : {"budget", "budget_max"}) {
    ResolvedOptions again;
    std::string remark;
    const std::string text = find_option(name)->write(*all);
    EXPECT_TRUE(find_option(name)->read(text, {nothing, available}, &again, &remark).ok());
    EXPECT_EQ(find_option(name)->write(again), text);
  }
}

TEST(OptionTable, TheNearestNameIsFound) {
  EXPECT_EQ(nearest_option("keeper"), "keepers");
  EXPECT_EQ(nearest_option("read_ahead"), "readahead");
  EXPECT_EQ(nearest_option("qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq"), "");
}

TEST(OptionText, TimesHaveUnits) {
  EXPECT_EQ(base::parse_milliseconds("30s").value(), 30'000u);
  EXPECT_EQ(base::parse_milliseconds("30 s").value(), 30'000u);
  EXPECT_EQ(base::parse_milliseconds("2min").value(), 120'000u);
  EXPECT_EQ(base::parse_milliseconds("7ms").value(), 7u);
  EXPECT_EQ(base::parse_milliseconds("2h").value(), 7'200'000u);
  EXPECT_EQ(base::parse_milliseconds("1d").value(), 86'400'000u);
  EXPECT_EQ(base::parse_milliseconds("0").value(), 0u);
  for (const char* text : {"", "7", "m", "-1s", "1.5s", "1 y", "s1", "307445734561825861min"})
    EXPECT_FALSE(base::parse_milliseconds(text).ok()) << text;
  EXPECT_EQ(base::format_milliseconds(0), "0ms");
  EXPECT_EQ(base::format_milliseconds(1500), "1500ms");
  EXPECT_EQ(base::format_milliseconds(1000), "1s");
  EXPECT_EQ(base::format_milliseconds(120'000), "2min");
  EXPECT_EQ(base::format_milliseconds(7'200'000), "2h");
}

TEST(OptionText, BytesAreWrittenExactly) {
  EXPECT_EQ(write_bytes(65536), "64 KiB");
  EXPECT_EQ(write_bytes(4097), "4097");
  EXPECT_EQ(write_bytes(0), "0 B");
  EXPECT_EQ(write_bytes(1536), "1.5 KiB");
}

// The page of the documentation is generated from the table. To write it again:
// OUTCORE_UPDATE_DOCS=1.
TEST(OptionTable, TheDocumentationIsUpToDate) {
  const std::string path = scene::source_folder() + "/docs/reference/options.md";
  if (std::getenv("OUTCORE_UPDATE_DOCS") != nullptr) std::ofstream(path) << option_table_markdown();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, option_table_markdown()) << "run this test with OUTCORE_UPDATE_DOCS=1";
}

}  // namespace
}  // namespace outcore::runtime
