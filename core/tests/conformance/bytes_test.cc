// Bytes: what a region shows, and what reaches the file.
#include <algorithm>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class BytesOf : public OnMechanism {};
OUTCORE_ON_ALL_MECHANISMS(BytesOf);

TEST_P(BytesOf, ReadsWhatTheFileHas) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadOnly).value();
  EXPECT_EQ(region.size_bytes(), data_bytes());
  EXPECT_EQ(region.page_bytes(), page_bytes());
  EXPECT_EQ(region.delivery(), GetParam().delivery);
  EXPECT_EQ(region.frames(), GetParam().frames);
  for (int pass = 0; pass < 2; ++pass)
    EXPECT_EQ(first_difference(region.data(), data_bytes()), data_bytes());
  EXPECT_GT(runtime_->metrics().counters.evictions, 0u);
}

TEST_P(BytesOf, ReadsBackwardsToo) {
  const std::string path = file_of(data_bytes());
  const Region region = map(path, Access::kReadOnly).value();
  for (uint64_t at = data_bytes(); at > 0; at -= 2048)
    ASSERT_EQ(region.data()[at - 1], byte_at(at - 1)) << at - 1;
}

TEST_P(BytesOf, WritesReachTheFileByFlush) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  for (uint64_t at = 0; at < data_bytes(); at += 5000) {
    region.data()[at] = ~region.data()[at];
    expected[at] = ~expected[at];
  }
  ASSERT_TRUE(region.flush().ok());
  EXPECT_TRUE(read_file(path) == expected);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), region.data()));
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_TRUE(read_file(path) == expected);
}

TEST_P(BytesOf, WritesReachTheFileByUnmapAlone) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  Bytes expected = pattern(data_bytes());
  for (uint64_t at = 1; at < data_bytes(); at += 3 * 4096)
    region.data()[at] = expected[at] = std::byte{0xA5};
  ASSERT_TRUE(region.unmap().ok());
  EXPECT_TRUE(read_file(path) == expected);
}

TEST_P(BytesOf, AFirstTouchMayBeAWrite) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  for (uint64_t at = 0; at < data_bytes(); at += page_bytes()) region.data()[at] = std::byte{1};
  ASSERT_TRUE(region.sync().ok());
  Bytes now = read_file(path);
  ASSERT_EQ(now.size(), data_bytes());
  for (uint64_t at = 0; at < data_bytes(); at += page_bytes()) {
    ASSERT_EQ(now[at], std::byte{1}) << at;
    now[at] = byte_at(at);
  }
  EXPECT_EQ(first_difference(now.data(), now.size()), now.size());
}

TEST_P(BytesOf, APageWrittenAgainAfterAFlushIsWrittenBackAgain) {
  const std::string path = file_of(page_bytes() * 4);
  Region region = map(path, Access::kReadWrite).value();
  for (int round = 1; round < 6; ++round) {
    region.data()[page_bytes() + 7] = static_cast<std::byte>(round);
    ASSERT_TRUE(region.flush().ok());
    ASSERT_EQ(read_file(path)[page_bytes() + 7], static_cast<std::byte>(round));
  }
}

TEST_P(BytesOf, OnlyWhatIsDirtyIsWrittenBack) {
  const std::string path = file_of(page_bytes() * 4);
  Region region = map(path, Access::kReadWrite).value();
  const uint64_t unit = tracks_system_pages() ? 4096 : page_bytes();
  ASSERT_EQ(first_difference(region.data(), region.size_bytes()), region.size_bytes());
  region.data()[3] = std::byte{1};
  region.data()[2 * page_bytes() + page_bytes() / 2] = std::byte{2};
  ASSERT_TRUE(region.flush().ok());
  EXPECT_EQ(region.metrics().counters.written_bytes, 2 * unit);
  ASSERT_TRUE(region.flush().ok());
  EXPECT_EQ(region.metrics().counters.written_bytes, 2 * unit) << "a flush makes clean";
  evict_all(region);
  EXPECT_EQ(region.metrics().counters.written_bytes, 2 * unit) << "what is clean just goes";
  region.data()[page_bytes() + 5] = std::byte{3};
  evict_all(region);
  // With message delivery, a thread that is woken too early touches twice. If its second message is
  // read after the eviction, the page is filled again, for a write.
  const uint64_t again = GetParam().delivery == Delivery::kMessages ? unit : 0;
  EXPECT_GE(region.metrics().counters.written_bytes, 3 * unit) << "eviction asks the same";
  EXPECT_LE(region.metrics().counters.written_bytes, 3 * unit + again);
}

TEST_P(BytesOf, FlushOfARangeStoresTheRange) {
  const std::string path = file_of(page_bytes() * 4);
  Region region = map(path, Access::kReadWrite).value();
  for (uint64_t page = 0; page < 4; ++page) region.data()[page * page_bytes()] = std::byte{9};
  ASSERT_TRUE(region.flush(page_bytes(), 1).ok());
  const Bytes now = read_file(path);
  EXPECT_EQ(now[page_bytes()], std::byte{9});
  EXPECT_EQ(now[3 * page_bytes()], byte_at(3 * page_bytes()));
}

TEST_P(BytesOf, SizesNeedBeNoMultipleOfAnything) {
  for (const uint64_t size : {uint64_t{1}, uint64_t{4095}, uint64_t{4097}, kMiB + 17}) {
    const std::string path = file_of(size, "size" + std::to_string(size));
    Region region = map(path, Access::kReadWrite).value();
    ASSERT_EQ(region.size_bytes(), size);
    EXPECT_EQ(first_difference(region.data(), size), size);
    const uint64_t end = (size + 4095) / 4096 * 4096;
    for (uint64_t at = size; at < end; ++at) ASSERT_EQ(region.data()[at], std::byte{0}) << at;
    region.data()[size - 1] = std::byte{0x77};
    region.data()[end - 1] = std::byte{0x99};  // past the end: dropped
    ASSERT_TRUE(region.unmap().ok());
    Bytes expected = pattern(size);
    expected[size - 1] = std::byte{0x77};
    EXPECT_TRUE(read_file(path) == expected) << size;
  }
}

TEST_P(BytesOf, AnEmptyFileCanBeMapped) {
  const std::string path = file_of(0);
  for (const Access access : {Access::kReadOnly, Access::kReadWrite, Access::kPrivate}) {
    Result<Region> region = map(path, access);
    ASSERT_TRUE(region.ok()) << region.message();
    EXPECT_EQ(region->size_bytes(), 0u);
    EXPECT_TRUE(region->flush().ok());
    EXPECT_TRUE(region->unmap().ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(path));
}

TEST_P(BytesOf, OffsetsNeedOnlyBeSystemPages) {
  const uint64_t offset = 3 * page_bytes() + 4096;
  const std::string path = file_of(8 * page_bytes() + 100);
  MapOptions options = map_options(Access::kReadWrite);
  options.offset = offset;
  options.size_bytes = 2 * page_bytes() + 123;
  Region region = runtime_->map(path, options).value();
  ASSERT_EQ(region.size_bytes(), options.size_bytes);
  EXPECT_EQ(first_difference(region.data(), options.size_bytes, offset), options.size_bytes);
  region.data()[options.size_bytes - 1] = std::byte{0x42};
  ASSERT_TRUE(region.unmap().ok());
  Bytes expected = pattern(8 * page_bytes() + 100);
  expected[offset + options.size_bytes - 1] = std::byte{0x42};
  EXPECT_TRUE(read_file(path) == expected);
}

TEST_P(BytesOf, AReadOnlyRegionRefusesWrites) {
  const std::string path = file_of(2 * page_bytes());
  const Region region = map(path, Access::kReadOnly).value();
  ASSERT_EQ(region.data()[0], byte_at(0));
  EXPECT_EQ(write_of(region.data(), std::byte{1}).signal, SIGSEGV) << "resident";
  EXPECT_EQ(write_of(region.data() + page_bytes(), std::byte{1}).signal, SIGSEGV) << "absent";
  EXPECT_EQ(region.data()[page_bytes()], byte_at(page_bytes()));
  EXPECT_TRUE(read_file(path) == pattern(2 * page_bytes()));
}

TEST_P(BytesOf, ReadAndWriteCopyWithoutAFault) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  Bytes got(2 * page_bytes() + 11);
  ASSERT_TRUE(region.read(page_bytes() - 5, got).ok());
  EXPECT_EQ(first_difference(got.data(), got.size(), page_bytes() - 5), got.size());
  const Bytes sent(page_bytes() + 3, std::byte{0x5C});
  ASSERT_TRUE(region.write(4097, sent).ok());
  ASSERT_TRUE(region.flush().ok());
  Bytes expected = pattern(data_bytes());
  std::copy(sent.begin(), sent.end(), expected.begin() + 4097);
  EXPECT_TRUE(read_file(path) == expected);
  EXPECT_EQ(region.read(region.size_bytes() - 1, got).code(), EINVAL);
  EXPECT_EQ(runtime_->metrics().counters.faults, 0u);
}

TEST_P(BytesOf, PagesOfNeighboursInOneBatchStayApart) {
  // Every system page contains its own number, and is written only there: combined write-backs must
  // not shift bytes.
  MapOptions options = map_options(Access::kReadWrite);
  options.size_bytes = data_bytes();
  const Region region = runtime_->map("memory:", options).value();
  for (uint64_t at = 0; at < data_bytes(); at += 4096)
    if (at / 4096 % 3 != 1) std::memcpy(region.data() + at, &at, sizeof at);
  for (uint64_t at = 0; at < data_bytes(); at += 4096) {
    uint64_t seen;
    std::memcpy(&seen, region.data() + at, sizeof seen);
    ASSERT_EQ(seen, at / 4096 % 3 != 1 ? at : 0u) << at;
  }
}

}  // namespace
}  // namespace outcore
