// Touches: their form in a file.
#include "core/prefetch/touches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace outcore::prefetch {
namespace {

// Each unit once, whole or in parts, partly in order.
std::vector<Touch> some_touches(std::mt19937_64& random, uint32_t units, uint32_t unit_end) {
  std::vector<Touch> touches;
  uint32_t next = static_cast<uint32_t>(random() % unit_end);
  while (touches.size() < units) {
    if (random() % 3 == 0) next = static_cast<uint32_t>(random() % unit_end);
    const auto parts = static_cast<uint16_t>(random() % 2 == 0 ? kAllParts : random() % 0xFFFF + 1);
    touches.push_back({next, parts});
    next = (next + 1) % unit_end;
  }
  return touches;
}

TEST(Touches, AreWhatWasWrittenWhateverTheOrder) {
  std::mt19937_64 random(1);
  for (const uint32_t unit_end : {1u, 16u, 5000u, 1u << 20, kTouchUnitEnd})
    for (const uint32_t units : {0u, 1u, 2u, 100u, 20'000u}) {
      const std::vector<Touch> touches = some_touches(random, units, unit_end);
      const std::string bytes = encode_touches(touches);
      ASSERT_TRUE(are_touches(bytes));
      ASSERT_EQ(decode_touches(bytes), touches);
    }
}

TEST(Touches, OfAScanAreAFewBytes) {
  std::vector<Touch> touches;
  for (uint32_t unit = 0; unit < 160 * 1024; ++unit) touches.push_back({unit, kAllParts});
  EXPECT_LE(encode_touches(touches).size(), 4u);
}

// The promise: at most 1 MiB for 10 GiB.
TEST(Touches, OfTenGibibytesInAnyOrderAndPartsFitIntoAMebibyte) {
  std::mt19937_64 random(2);
  std::vector<uint32_t> units(160 * 1024);
  std::iota(units.begin(), units.end(), 0);
  std::shuffle(units.begin(), units.end(), random);
  std::vector<Touch> touches;
  for (const uint32_t unit : units)
    touches.push_back({unit, static_cast<uint16_t>(random() % 0xFFFF + 1)});
  EXPECT_LE(encode_touches(touches).size(), size_t{800} << 10);
  for (Touch& touch : touches) touch.parts = kAllParts;
  EXPECT_LE(encode_touches(touches).size(), size_t{640} << 10);
}

TEST(Touches, CutBytesAreTheBeginningOfThem) {
  std::mt19937_64 random(3);
  const std::vector<Touch> touches = some_touches(random, 500, 1 << 20);
  const std::string bytes = encode_touches(touches);
  for (size_t most = 0; most <= bytes.size() + 1; ++most) {
    const std::string_view cut = cut_touches(bytes, most);
    ASSERT_LE(cut.size(), most);
    ASSERT_TRUE(are_touches(cut));
    const std::vector<Touch> left = decode_touches(cut);
    ASSERT_LE(left.size(), touches.size());
    ASSERT_TRUE(std::equal(left.begin(), left.end(), touches.begin()));
    ASSERT_TRUE(most < bytes.size() || left.size() == touches.size());
  }
}

TEST(Touches, JoinedAreTheNewerAndThenWhatTheOlderHaveBeside) {
  const std::vector<Touch> newer = {{9, 1}, {2, kAllParts}, {5, 0b10}};
  const std::vector<Touch> older = {{1, 1}, {2, 1}, {5, 0b100}, {6, kAllParts}, {7, kAllParts}};
  const std::vector<Touch> expected = {{9, 1}, {2, kAllParts}, {5, 0b110},
                                       {1, 1}, {6, kAllParts}, {7, kAllParts}};
  EXPECT_EQ(join_touches(newer, encode_touches(older)), expected);
  EXPECT_EQ(join_touches({}, encode_touches(older)), older);
  EXPECT_EQ(join_touches(newer, ""), newer);
}

TEST(Touches, JoinedAreNeverMoreThanTheirMost) {
  std::vector<Touch> newer, older;
  for (uint32_t i = 0; i < kTouchedUnitsMax; ++i) {
    newer.push_back({2 * i, 1});
    older.push_back({2 * i + 1, 1});
  }
  EXPECT_EQ(join_touches(newer, encode_touches(older)), newer);
  newer.pop_back();
  const std::vector<Touch> joined = join_touches(newer, encode_touches(older));
  ASSERT_EQ(joined.size(), kTouchedUnitsMax);
  EXPECT_EQ(joined.back().unit, 1u);
}

TEST(Touches, ForgedBytesGiveNoMoreThanTheirMost) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 24, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    TouchReader reader(bytes);
    uint64_t units = 0;
    for (TouchRun run; reader.next(&run);) {
      ASSERT_NE(run.units, 0u);
      ASSERT_NE(run.parts, 0);
      ASSERT_LE(uint64_t{run.first} + run.units, kTouchUnitEnd);
      units += run.units;
    }
    ASSERT_LE(units, kTouchedUnitsMax);
    ASSERT_EQ(are_touches(bytes), !reader.is_broken());
    if (reader.is_broken()) continue;
    ASSERT_EQ(reader.position(), bytes.size());
  }
}

TEST(Touches, BytesThatEndTooEarlyAreNone) {
  const std::vector<Touch> touches = {{1'000'000, 0b10}};
  const std::string bytes = encode_touches(touches);
  for (size_t left = 1; left < bytes.size(); ++left)
    EXPECT_FALSE(are_touches(bytes.substr(0, left))) << left;
  EXPECT_FALSE(are_touches(std::string(8, '\xff'))) << "a number without an end";
}

}  // namespace
}  // namespace outcore::prefetch
