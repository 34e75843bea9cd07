// The text of .npy headers: Latin-1 in formats 1.0 and 2.0, UTF-8 in 3.0, UTF-8 in the container.
#include "arrays/commands/npy_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outcore::cli {
namespace {

using testing::HasSubstr;

std::string header_of(char format, const std::string& name) {
  const std::string text =
      "{'descr': [('" + name + "', '<f8')], 'fortran_order': False, 'shape': (3,), }\n";
  std::string header("\x93NUMPY");
  header += format;
  header += '\0';
  for (size_t i = 0; i < (format == 1 ? 2 : 4); ++i)
    header += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return header + text;
}

TEST(NpyHeader, TheTextOfFormats1And2IsLatin1) {
  for (const char format : {'\1', '\2'}) {
    const auto header = parse_npy_header(header_of(format,
                                                   "gr\xf6\xdf"
                                                   "e"));
    ASSERT_TRUE(header.ok()) << header.message();
    EXPECT_EQ(header->type.note, "[('gr\u00f6\u00dfe', '<f8')]");
    EXPECT_EQ(header->data_bytes, 24u);
  }
}

TEST(NpyHeader, TheTextOfFormat3IsUtf8) {
  const auto header = parse_npy_header(header_of(3, "\u6e29\u5ea6"));
  ASSERT_TRUE(header.ok()) << header.message();
  EXPECT_EQ(header->type.note, "[('\u6e29\u5ea6', '<f8')]");
}

TEST(NpyHeader, ANewerFormatIsRefused) {
  const auto header = parse_npy_header(header_of(4, "x"));
  ASSERT_FALSE(header.ok());
  EXPECT_THAT(header.message(), HasSubstr("newer than is known here"));
}

TEST(NpyHeader, NamesBeyondAsciiAreWrittenInFormat3) {
  for (const std::string name : {"x", "gr\u00f6\u00dfe", "\u6e29\u5ea6"}) {
    FileArray array;
    array.info.type = {"V8", 8};
    array.info.dims = {3};
    array.attributes[kNumpyNote] = "[('" + name + "', '<f8')]";
    const std::string written = npy_header_of(array, 0);
    EXPECT_EQ(int{written[6]}, name == "x" ? 1 : 3);
    EXPECT_EQ(written.size() % 64, 0u);
    const auto header = parse_npy_header(written);
    ASSERT_TRUE(header.ok()) << header.message();
    EXPECT_EQ(header->type.note, array.attributes[kNumpyNote]);
    EXPECT_EQ(header->size_bytes, written.size());
  }
}

}  // namespace
}  // namespace outcore::cli
