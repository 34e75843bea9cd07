// TouchProfile: what is kept between two starts, and its form in a file.
#include "core/prefetch/touch_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <random>

#include "core/prefetch/touches.h"

namespace outcore::prefetch {
namespace {

using testing::HasSubstr;

std::string touches_of(std::vector<Touch> touches) { return encode_touches(touches); }

LearntFile file_of(const std::string& path, std::string touches) {
  return {path, 12'345'678'901, -5, std::move(touches)};
}

// Scattered units, of about six bytes each.
std::string many_touches(uint32_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Touch> touches;
  for (uint32_t i = 0; i < count; ++i)
    touches.push_back({static_cast<uint32_t>(random() % kTouchUnitEnd), 0b101});
  return encode_touches(touches);
}

TEST(TouchProfile, IsWhatWasWritten) {
  TouchProfile profile;
  profile.add({file_of("/a", touches_of({{1, 1}})), file_of("/b c/ü", many_touches(1000, 1))});
  const Result<TouchProfile> again = TouchProfile::decode(profile.encode());
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again.value().files(), profile.files());
  EXPECT_EQ(again.value().find("/a")->modified_ns, -5);
  EXPECT_EQ(again.value().find("/c"), nullptr);
}

TEST(TouchProfile, OfNoBytesHasNoFiles) {
  const Result<TouchProfile> none = TouchProfile::decode("");
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none.value().files().empty());
  const Result<TouchProfile> empty = TouchProfile::decode(TouchProfile().encode());
  ASSERT_TRUE(empty.ok()) << empty.message();
  EXPECT_TRUE(empty.value().files().empty());
}

TEST(TouchProfile, WhatIsLearntNowStandsBeforeWhatWasThere) {
  TouchProfile profile;
  profile.add({file_of("/a", touches_of({{1, 1}, {2, 1}})), file_of("/b", touches_of({{3, 1}}))});
  profile.add({file_of("/a", touches_of({{7, 1}, {2, 0b10}}))});
  ASSERT_EQ(profile.files().size(), 2u);
  EXPECT_EQ(profile.files()[0].path, "/a");
  EXPECT_EQ(profile.files()[0].touches, touches_of({{7, 1}, {2, 0b11}, {1, 1}}));
  EXPECT_EQ(profile.files()[1], file_of("/b", touches_of({{3, 1}})));
}

TEST(TouchProfile, FitsIntoAMebibyteAndTheLatestCountMost) {
  TouchProfile profile;
  for (uint64_t i = 0; i < 10; ++i)
    profile.add({file_of("/" + std::to_string(i), many_touches(30'000, i))});
  profile.add(
      {file_of("/large", many_touches(250'000, 77)), file_of("/small", many_touches(9, 7))});
  const std::string bytes = profile.encode();
  EXPECT_LE(bytes.size(), TouchProfile::kBytesMax);
  EXPECT_GE(bytes.size(), TouchProfile::kBytesMax - 8);
  const Result<TouchProfile> again = TouchProfile::decode(bytes);
  ASSERT_TRUE(again.ok()) << again.message();
  ASSERT_EQ(again.value().files().size(), 2u) << "the old ones went";
  EXPECT_EQ(again.value().files()[0], *profile.find("/small"));
  const std::string& whole = profile.find("/large")->touches;
  const std::string& cut = again.value().find("/large")->touches;
  EXPECT_EQ(cut, whole.substr(0, cut.size())) << "the end of it went";
}

TEST(TouchProfile, HasAtMostSoManyFiles) {
  TouchProfile profile;
  std::vector<LearntFile> files;
  for (size_t i = 0; i < TouchProfile::kFilesMax + 5; ++i)
    files.push_back(file_of("/" + std::to_string(i), touches_of({{1, 1}})));
  profile.add(std::move(files));
  const Result<TouchProfile> again = TouchProfile::decode(profile.encode());
  ASSERT_TRUE(again.ok()) << again.message();
  EXPECT_EQ(again.value().files().size(), TouchProfile::kFilesMax);
}

TEST(TouchProfile, AnotherFileIsNoneAndSaysSo) {
  for (const std::string& text :
       {std::string("hello"), std::string(100, 'x'), std::string("OCL")}) {
    const Result<TouchProfile> none = TouchProfile::decode(text);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.code(), EINVAL);
    EXPECT_THAT(none.message(), HasSubstr("name another file"));
    EXPECT_EQ(none.message().find('\n'), std::string::npos);
  }
}

TEST(TouchProfile, ANewerVersionIsRefusedWithTheRemedy) {
  std::string bytes = TouchProfile().encode();
  bytes[4] = 9;
  const Result<TouchProfile> newer = TouchProfile::decode(bytes);
  ASSERT_FALSE(newer.ok());
  EXPECT_THAT(newer.message(), HasSubstr("version 9"));
}

TEST(TouchProfile, AChangedByteOrAnotherLengthIsSeen) {
  TouchProfile profile;
  profile.add(
      {file_of("/a", touches_of({{1, 1}, {5, kAllParts}})), file_of("/b", many_touches(20, 1))});
  const std::string good = profile.encode();
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_FALSE(TouchProfile::decode(bad).ok()) << "byte " << i;
    EXPECT_FALSE(TouchProfile::decode(std::string_view(good).substr(0, i)).ok() && i != 0) << i;
  }
  EXPECT_FALSE(TouchProfile::decode(good + std::string(1, '\0')).ok());
}

TEST(TouchProfile, APathThatIsNoneIsRefusedWhateverTheChecksumSays) {
  TouchProfile profile;
  profile.add({file_of("relative", touches_of({{1, 1}}))});
  const Result<TouchProfile> refused = TouchProfile::decode(profile.encode());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.message(), HasSubstr("damaged"));
}

}  // namespace
}  // namespace outcore::prefetch
