#include "core/os/process_stat.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

namespace outcore::os {
namespace {

TEST(ProcessStats, AreReadByFieldWhateverTheNameContains) {
  const ProcessStat stat(
      "12 (a) (b) S) R 3 4 5 6 7 8 9 10 11 12 1400 1500 16 17 18 19 20 21 2200 23\n");
  EXPECT_EQ(stat.name(), "a) (b) S");
  EXPECT_EQ(stat.state(), 'R');
  EXPECT_EQ(stat.number(ProcessStat::kUserTicks), 1400U);
  EXPECT_EQ(stat.number(ProcessStat::kSystemTicks), 1500U);
  EXPECT_EQ(stat.number(ProcessStat::kThreads), 20U);
  EXPECT_EQ(stat.number(ProcessStat::kStartTicks), 2200U);
}

TEST(ProcessStats, OfTextsThatAreCutShortSayNothing) {
  for (const char* text : {"", "12", "12 (name", "12 )(", "12 (name)"}) {
    const ProcessStat stat(text);
    EXPECT_EQ(stat.state(), 0) << text;
    EXPECT_EQ(stat.number(ProcessStat::kUserTicks), 0U) << text;
  }
  const ProcessStat begun("12 (name) S 1 2 3");
  EXPECT_EQ(begun.name(), "name");
  EXPECT_EQ(begun.state(), 'S');
  EXPECT_EQ(begun.number(ProcessStat::kThreads), 0U);
}

TEST(ProcessStats, OfThisProcessAreTheKernels) {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const ProcessStat stat(text);
  EXPECT_EQ(stat.state(), 'R');
  EXPECT_GE(stat.number(ProcessStat::kThreads), 1U);
  EXPECT_NE(stat.number(ProcessStat::kStartTicks), 0U);
}

}  // namespace
}  // namespace outcore::os
