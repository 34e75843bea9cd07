// Where a cluster keeps a key.
#include "far/redis/key_slot.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace outcore::redis
