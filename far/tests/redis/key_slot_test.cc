// Where a cluster keeps a key.
#include "far/redis/key_slot.h"

#include <gtest/gtest.h>

#include <string>

namespace outcore::redis {
namespace {

TEST(KeySlot, IsThatOfTheSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3u);
  EXPECT_EQ(slot_of("foo"), 12182u);
  EXPECT_EQ(slot_of(""), 0u);
}

TEST(KeySlot, OnlyTheFirstTagCounts) {
  EXPECT_EQ(slot_of("a{foo}b"), slot_of("foo"));
  EXPECT_EQ(slot_of("{foo}{bar}"), slot_of("foo"));
  EXPECT_EQ(slot_of("a{{foo}}"), slot_of("{foo"));
  EXPECT_NE(slot_of("a{}foo"), slot_of("foo"));  // an empty tag is none
  EXPECT_NE(slot_of("a{foo"), slot_of("foo"));
}

TEST(KeySlot, EvenTagsLieInEqualStretches) {
  for (const uint32_t count : {1u, 16u, 256u})
    for (uint32_t i = 0; i < count; ++i)
      EXPECT_EQ(slot_of(std::to_string(even_tag(i, count))) / (kSlotCount / count), i);
}

TEST(Keys, FitWithTheLargestNumbersThatTheyCanHave) {
  const std::string id(16, 'f');  // as long as ids are
  char text[80];
  const auto key = [&](size_t room, std::string_view of, std::optional<uint64_t> chunk) {
    return std::string_view(text, write_key({text, room}, UINT32_MAX, of, chunk));
  };
  EXPECT_EQ(key(sizeof text, id, UINT64_MAX), "oc:{4294967295}:" + id + ":18446744073709551615");
  EXPECT_EQ(key(sizeof text, id, std::nullopt), "oc:{4294967295}:" + id + ":f");
  EXPECT_EQ(key(53, id, UINT64_MAX).size(), 53u) << "to the last byte";
}

TEST(Keys, ThatDoNotFitEndTheProgramInsteadOfBeingCut) {
  char text[81];
  const auto write = [&](size_t room, size_t id_bytes) {
    text[room] = 'x';
    return write_key({text, room}, UINT32_MAX, std::string(id_bytes, 'f'), UINT64_MAX);
  };
  EXPECT_EQ(write(80, 43), 80u);
  EXPECT_EQ(text[80], 'x');
  EXPECT_DEATH(write(80, 44), "");
  EXPECT_DEATH(write(80, 300), "");
}

}  // namespace
}  // namespace outcore::redis
