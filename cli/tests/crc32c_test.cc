// The checksum of Zarr 3's codec `crc32c`: the vectors of RFC 3720 (B.4), and lengths that are no
// multiple of the eight bytes that are taken at a time.
#include "arrays/formats/crc32c.h"

#include <string>

#include "gtest/gtest.h"

namespace outcore::cli {
namespace {

constexpr size_t kVectorBytes = 32;

TEST(Crc32c, AgreesWithTheVectorsOfRfc3720) {
  std::string ascending, descending;
  for (size_t i = 0; i < kVectorBytes; ++i) {
    ascending += static_cast<char>(i);
    descending += static_cast<char>(kVectorBytes - 1 - i);
  }
  EXPECT_EQ(crc32c(std::string(kVectorBytes, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(kVectorBytes, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(crc32c(descending), 0x113fdb5cu);
}

TEST(Crc32c, TakesAnyLength) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("a"), 0xc1d04330u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
}

}  // namespace
}  // namespace outcore::cli
