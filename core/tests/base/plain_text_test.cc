// What comes from outside is one line, and no terminal's business.
#include "core/base/plain_text.h"

#include <gtest/gtest.h>

namespace outcore::base {
namespace {

TEST(PlainText, OneLineHasNothingThatControlsATerminal) {
  EXPECT_EQ(one_line("es\x1b[31mc\rX"), "es [31mc X");
  EXPECT_EQ(one_line("two\nlines\n"), "two lines");
  EXPECT_EQ(one_line("Grüße, 漢"), "Grüße, 漢");
  EXPECT_EQ(one_line("\x7f|\xc2\x85|\xff|\xc3"), " |??|?|?") << "controls of C1, and no text";
  EXPECT_EQ(one_line(""), "");
}

TEST(PlainText, TheEndOfALineHasWholeCharacters) {
  EXPECT_EQ(end_of_line("/a/file", 7), "/a/file");
  EXPECT_EQ(end_of_line("/a/file", 5), "…file");
  EXPECT_EQ(end_of_line("/ä/ü", 4), "/ä/ü") << "of four characters";
  EXPECT_EQ(end_of_line("/a/äöü", 3), "…öü");
  EXPECT_EQ(end_of_line("/a\x1b/b\n/c", 5), "…b /c");
  EXPECT_EQ(end_of_line("漢漢漢", 1), "…");
}

TEST(PlainText, ColumnsAreOfCharacters) {
  EXPECT_EQ(padded("äö", 4), "äö  ");
  EXPECT_EQ(padded("…1234", 5), "…1234");
  EXPECT_EQ(padded("12345", 3), "12345");
}

}  // namespace
}  // namespace outcore::base
