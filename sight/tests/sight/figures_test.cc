// Numbers, texts and tables of a terminal: no wider than they may be.
#include "sight/commands/figures.h"

#include <clocale>
#include <cmath>

#include "gtest/gtest.h"
#include "sight/commands/table.h"

namespace outcore::cli {
namespace {

TEST(Figures, TakeFiveColumnsWhateverTheyAre) {
  for (double number = 0; number < 1e19; number = number * 1.03 + 0.4) {
    EXPECT_LE(short_count(number).size(), 5u) << number;
    EXPECT_LE(short_bytes(number).size(), 5u) << number;
    EXPECT_LE(short_ratio(number).size(), 5u) << number;
  }
  for (int bucket = 0; bucket < 40; ++bucket)
    EXPECT_LE(short_time((uint64_t{2} << bucket) - 1).size(), 5u) << bucket;
  EXPECT_EQ(short_count(1234), "1.2k");
  EXPECT_EQ(short_count(999.6), "1.0k");
  EXPECT_EQ(short_bytes(1536), "1.5K");
  EXPECT_EQ(short_bytes(1023.9 * 1024), "1.0M");
  EXPECT_EQ(short_time(0), "-");
  EXPECT_EQ(short_percent(3.4), "340%");
  EXPECT_EQ(short_percent(0.001), "<1%");
  EXPECT_EQ(short_ratio(std::nullopt), "-");
}

TEST(Figures, TextsFromOutsideControlNothing) {
  const Glyphs ascii{false};
  EXPECT_EQ(ascii.shown("a\x1b[2Jb\nc\x7f"), "a?[2Jb?c?");
  EXPECT_EQ(ascii.shown("\xC3\xA4x\xFF"), "?x?");
  const std::string zero(1, '\0');
  EXPECT_EQ(ascii.shown("a" + zero + "b"), "a?b");
}

class Utf8 : public testing::Test {
 protected:
  void SetUp() override {
    if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) GTEST_SKIP() << "no locale C.UTF-8 here";
  }
  void TearDown() override { std::setlocale(LC_CTYPE, "C"); }
  const Glyphs utf8_{true};
};

TEST_F(Utf8, LettersTakeTheColumnsThatTheyTake) {
  EXPECT_EQ(columns_of("\xE6\x97\xA5\xE6\x9C\xAC"), 4u);  // two wide ones
  EXPECT_EQ(utf8_.shown("\xC2\x9B[2J\xC0\x80"), "?[2J??");
  for (size_t columns = 0; columns < 8; ++columns) {
    const std::string text = "a\xE6\x97\xA5\xC3\xA4\xE6\x9C\xACz";
    EXPECT_EQ(columns_of(fit(text, columns, utf8_)), columns);
    EXPECT_LE(columns_of(cut_start(text, columns, utf8_)), columns);
  }
  EXPECT_EQ(cut_start("/a/long/path", 5, utf8_), "…path");
}

TEST_F(Utf8, BarsAndSparklinesAreAsWideAsAsked) {
  for (const double share : {-1.0, 0.0, 0.01, 0.5, 0.999, 1.0, 7.0, std::nan("")})
    for (const size_t columns : {0u, 2u, 3u, 10u}) {
      EXPECT_EQ(columns_of(bar(share, columns, utf8_)), columns) << share;
      EXPECT_EQ(columns_of(bar(share, columns, Glyphs{false})), columns) << share;
    }
  EXPECT_EQ(sparkline({0, 0.5, 1}, 5, 0, utf8_), "   ▄█");
  EXPECT_EQ(sparkline({0, 0.5, 1}, 2, 0, Glyphs{false}), ":#");
  EXPECT_EQ(columns_of(sparkline({INFINITY, std::nan(""), 1}, 4, 0.25, utf8_)), 4u);
  EXPECT_EQ(sparkline({}, 3, 0, utf8_), "   ");
}

TEST(TableColumns, TheMostImportantAreShownAndFillTheWidth) {
  const std::vector<Wanted> columns = {{7, 0, 0}, {8, 0, 5}, {5, 0, 2}, {12, 40, 1}};
  const auto total = [](const std::vector<Fitted>& fitted) {
    size_t width = fitted.empty() ? 0 : fitted.size() - 1;
    for (const Fitted& one : fitted) width += one.width;
    return width;
  };
  for (size_t width = 20; width < 60; ++width)
    EXPECT_EQ(total(fit_columns(columns, width)), width) << width;
  EXPECT_EQ(fit_columns(columns, 1).size(), 1u);  // too narrow for any: the first
  EXPECT_EQ(fit_columns(columns, 27).size(), 3u);
  EXPECT_EQ(fit_columns(columns, 35).size(), 4u);
}

}  // namespace
}  // namespace outcore::cli
