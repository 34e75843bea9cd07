// Text: what another process may read while it is written.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "core/published/layout.h"

namespace outcore::published {
namespace {

constexpr char kCut[] = "\xE2\x80\xA6";  // …

// Whether all bytes belong to whole letters of UTF-8.
bool is_utf8(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return false;
    i += length;
  }
  return true;
}

TEST(Text, KeepsWhatFits) {
  Text<16> text;
  EXPECT_EQ(text.get(), "");
  for (const char* const what : {"a", "123456789012345", "", "zz"}) {
    text.set(what);
    EXPECT_EQ(text.get(), what);
  }
}

TEST(Text, IsCutAndSaysSo) {
  Text<16> text;
  text.set("1234567890123456");
  EXPECT_EQ(text.get(), std::string("123456789012") + kCut);
  text.set("123456789012345");
  EXPECT_EQ(text.get(), "123456789012345") << "nothing of the longer one is left";
  text.set("ab");
  EXPECT_EQ(text.get(), "ab");
}

TEST(Text, IsNotCutWithinALetter) {
  for (const char* const letter : {"\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"})
    for (size_t before = 0; before < 8; ++before) {
      std::string whole(before, 'x');
      while (whole.size() < 40) whole += letter;
      Text<16> text;
      text.set(whole);
      const std::string got = text.get();
      EXPECT_TRUE(is_utf8(got)) << letter << " after " << before;
      ASSERT_TRUE(got.ends_with(kCut)) << letter << " after " << before;
      EXPECT_EQ(whole.find(got.substr(0, got.size() - 3)), 0u);
      EXPECT_GE(got.size(), 16u - 1 - 3) << "no more is cut than the letter";
    }
}

TEST(Text, BytesThatAreNoLettersStayAndEndNothing) {
  Text<16> text;
  const std::string odd(64, '\x80');
  text.set(odd);
  EXPECT_EQ(text.get().find(odd.substr(0, 8)), 0u);
  EXPECT_TRUE(text.get().ends_with(kCut));
}

TEST(Text, EndsWithinItsBytesWhileItIsWritten) {
  Text<32> text;
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (int i = 0; !is_over; ++i) text.set(std::string(static_cast<size_t>(i % 64), 'x'));
  });
  bool is_right = true;
  for (int i = 0; i < 20'000; ++i) is_right = is_right && text.get().size() < 32;
  is_over = true;
  writer.join();
  EXPECT_TRUE(is_right);
  text.set("end");
  EXPECT_EQ(text.get(), "end");
}

}  // namespace
}  // namespace outcore::published
