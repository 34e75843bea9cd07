// Containers that are cut off, overwritten, of a newer format or forged: told, never served, no
// crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "arrays/container/catalog_text.h"
#include "arrays/container/container_storage.h"
#include "outcore/arrays.h"
#include "tests/folder.h"
#include "tests/share.h"

namespace outcore {
namespace {

using testing::HasSubstr;

class DamagedArrays : public testing::Test {
 protected:
  void SetUp() override {
    Arrays out = Arrays::open(path_, ArraysMode::kWrite).value();
    for (uint64_t i = 0; i < 20; ++i)
      ASSERT_TRUE(out.store("a" + std::to_string(i), std::vector<uint64_t>(100 + 50 * i, i)).ok());
    ASSERT_TRUE(out.close().ok());
    std::ifstream file(path_, std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(file), {});
  }
  void write(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }
  std::string bytes_now() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // The whole one, but for these bits of one byte; before that it was the same, or write(whole_).
  void flip(size_t at, int bits) {
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(flipped_at_)).put(whole_[flipped_at_]);
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(whole_[at] ^ bits));
    flipped_at_ = at;
  }
  // Each array that is there is as it was stored.
  void expect_true() const {
    const auto in = Arrays::open(path_);
    if (!in) {
      EXPECT_EQ(in.message().find('\n'), std::string::npos);
      return;
    }
    for (const ArrayInfo& info : in->list()) {
      const auto values = in->load<std::vector<uint64_t>>(info.name);
      if (!values) continue;
      const uint64_t i = std::stoul(info.name.substr(1));
      EXPECT_EQ(values.value(), std::vector<uint64_t>(100 + 50 * i, i)) << info.name;
    }
  }
  const scene::Folder folder_;
  const std::string path_ = folder_.path() + "/a.oca";
  std::string whole_;
  size_t flipped_at_ = 0;
};

// What has rotted is told: arrays that were there are not silently others, or absent.
TEST_F(DamagedArrays, ARottenRecordIsTold) {
  // The last one says nothing: it is there so that the one before is missed.
  const size_t last = whole_.rfind("OCJD"), end = whole_.find(std::string(16, '\0'), last);
  ASSERT_GT(last, 8192u);
  uint64_t told = 0;
  for (size_t at = 8192; at < end; at += 13) {
    flip(at, 4);
    const auto in = Arrays::open(path_);
    told += in.code() == EIO ? 1 : 0;
    // Between records there are bytes that nothing uses.
    EXPECT_TRUE(in.code() == EIO || (in.ok() && in->list().size() == 20)) << at;
    expect_true();
  }
  EXPECT_GT(told, (last - 8192) / 13 * 9 / 10);
}

// A page of zeros, as disks give for what they have lost, ends the journal as a crash would. The
// container is neither empty, nor written over.
TEST_F(DamagedArrays, APageOfZerosIsToldAndNotWrittenOver) {
  for (size_t at = 4096; at < whole_.find(std::string(4096, '\0'), 8192); at += 4096) {
    std::string bytes = whole_;
    bytes.replace(at, 4096, 4096, '\0');
    write(bytes);
    for (const ArraysMode mode : {ArraysMode::kRead, ArraysMode::kUpdate}) {
      const auto in = Arrays::open(path_, mode);
      EXPECT_EQ(in.code(), EIO) << at;
      EXPECT_THAT(in.message(), HasSubstr("is damaged: ")) << at;
      EXPECT_THAT(in.message(), HasSubstr("go back to a copy of it")) << at;
    }
    EXPECT_EQ(bytes_now(), bytes) << at;
  }
}

// The same before there were marks: an array lies behind a journal that has no record.
TEST_F(DamagedArrays, AnEmptyJournalBeforeArraysIsTold) {
  std::string bytes = whole_;
  bytes.replace(8192, 256 * 1024 - 8192, 256 * 1024 - 8192, '\0');
  bytes.replace(4096 + 48, 4096 - 48, 4096 - 48, '\0');
  write(bytes);
  EXPECT_EQ(Arrays::open(path_, ArraysMode::kUpdate).code(), EIO);
  EXPECT_EQ(bytes_now(), bytes);
}

// An earlier Outcore made the file longer before it had a record on the disk: power that failed in
// between left zeros. So does a copy of a store whose creator died.
TEST_F(DamagedArrays, ALongerFileWithoutARecordIsUsedAgainIfItHasOnlyZeros) {
  for (const size_t size : {size_t{256 * 1024 + 4096}, size_t{1 << 20}, size_t{70 << 20}}) {
    const std::string empty = whole_.substr(0, 4096 + 48) + std::string(size - 4096 - 48, '\0');
    for (const size_t at : {size_t{256 * 1024}, size - 1}) {
      std::string bytes = empty;
      bytes[at] = 1;
      write(bytes);
      EXPECT_EQ(Arrays::open(path_, ArraysMode::kUpdate).code(), EIO) << at;
    }
    write(empty);
    EXPECT_TRUE(Arrays::open(path_)->list().empty()) << size;
    Arrays out = Arrays::open(path_, ArraysMode::kUpdate).value();
    ASSERT_TRUE(out.store("v", std::vector<int>(1000, 7)).ok());
    ASSERT_TRUE(out.close().ok());
    EXPECT_EQ(Arrays::open(path_)->load<std::vector<int>>("v").value(), std::vector<int>(1000, 7));
  }
}

TEST_F(DamagedArrays, ManyRandomBytesNeverLeaveAnEmptyContainer) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    std::string bytes = whole_;
    for (int i = 0; i < 300; ++i) bytes[random() % 20'000] = static_cast<char>(random());
    write(bytes);
    EXPECT_FALSE(Arrays::open(path_, ArraysMode::kUpdate).ok()) << round;
    EXPECT_EQ(bytes_now(), bytes) << round;
  }
}

// The journal that came before is whole, too, but it says what was true long ago.
TEST_F(DamagedArrays, WithoutTheHeaderOfTheLastJournalTheOneBeforeDoesNotCount) {
  {
    Arrays out = Arrays::open(path_, ArraysMode::kUpdate).value();
    const std::string text(60'000, 'x');
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(out.set_attribute("", "t", text).ok());
    ASSERT_TRUE(out.close().ok());
  }
  std::string bytes = bytes_now();
  ASSERT_EQ(bytes.substr(0, 7), "OUTCARR") << "there is no header of a second journal";
  EXPECT_EQ(Arrays::open(path_)->verify("", {})->damages, 0u);
  bytes.replace(0, 4096, 4096, '\0');
  write(bytes);
  EXPECT_EQ(Arrays::open(path_).code(), EIO);
  EXPECT_EQ(Arrays::open(path_, ArraysMode::kUpdate).code(), EIO);
}

TEST_F(DamagedArrays, ASpareHeaderPageIsToldAndMended) {
  std::string bytes = whole_;
  bytes.replace(0, 4096, 4096, 'x');
  write(bytes);
  std::string where;
  const auto count = [&] {
    const auto in = Arrays::open(path_);
    EXPECT_EQ(in->list().size(), 20u);
    const auto tell = [&](const ArrayDamage& damage) { where = damage.array + damage.where; };
    return in->verify("", tell)->damages;
  };
  EXPECT_EQ(count(), 1u);
  EXPECT_THAT(where, testing::StartsWith("its spare header page, at 0: "));
  ASSERT_TRUE(Arrays::open(path_, ArraysMode::kUpdate)->close().ok());
  EXPECT_EQ(count(), 0u);
  expect_true();
}

// Its creator died before it had stored anything: nothing is lost, and it is used again.
TEST_F(DamagedArrays, AContainerThatWasOnlyBegunIsUsedAgain) {
  const std::string empty = whole_.substr(0, 4096 + 48) + std::string(256 * 1024 - 4096 - 48, '\0');
  write(empty);
  EXPECT_TRUE(Arrays::open(path_)->list().empty());
  EXPECT_TRUE(Arrays::open(path_, ArraysMode::kUpdate)->store("v", std::vector<int>{1}).ok());
}

// Records that came to the disk before others did, which never came: nothing may follow the last.
TEST_F(DamagedArrays, WhatIsBehindTheLastRecordGoesBeforeAnythingIsWritten) {
  constexpr size_t kAt = 200'000;  // in the journal, far behind its end
  std::string bytes = whole_;
  bytes.replace(kAt, 16, "a record of old!");
  write(bytes);
  ASSERT_TRUE(Arrays::open(path_, ArraysMode::kUpdate)->close().ok());
  std::ifstream file(path_, std::ios::binary);
  const std::string now{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(now.substr(kAt, 16), std::string(16, '\0'));
  expect_true();
}

TEST_F(DamagedArrays, AFileThatIsCutOffIsTold) {
  for (size_t size = 1; size < whole_.size(); size += 1 + size / 7) {
    write(whole_.substr(0, size));
    const auto in = Arrays::open(path_);
    EXPECT_FALSE(in.ok()) << size;
    EXPECT_EQ(in.message().find('\n'), std::string::npos);
  }
}

TEST_F(DamagedArrays, AFlippedBitOfTheCatalogServesNothingWrong) {
  std::mt19937 random(3);
  for (int i = 0; i < 600; ++i) {
    const size_t at = random() % (i % 2 == 0 ? 128 : 20'000);
    flip(at, 1 << random() % 8);
    expect_true();
  }
}

TEST_F(DamagedArrays, ANewerFormatAsksForANewerOutcore) {
  std::string bytes = whole_;
  ASSERT_EQ(bytes[4096 + 8], 1) << "the version, in the header page of the first generation";
  bytes[4096 + 8] = 2;
  const uint64_t sum = XXH3_64bits(bytes.data() + 4096, 40);
  std::memcpy(bytes.data() + 4096 + 40, &sum, sizeof sum);
  write(bytes);
  EXPECT_THAT(Arrays::open(path_).message(), HasSubstr("newer"));
}

TEST(ForgedRecords, ThatAreNestedDeeplyAreRefused) {
  std::vector<uint8_t> record(1'000'000, 0x81);
  record.back() = 0x01;
  EXPECT_FALSE(arrays::decode(record).ok());
}

// A container with one finished array that was never stored: whoever forged it has all checksums.
void forge(const std::string& path, arrays::Entry entry) {
  ASSERT_TRUE(Arrays::open(path, ArraysMode::kWrite)->close().ok());
  std::ofstream(path, std::ios::binary | std::ios::in | std::ios::ate)
      << std::string(1 << 20, '\0');
  arrays::StorageOptions options;
  options.uri = path;
  options.is_writable = true;
  options.runtime = std::make_shared<arrays::LentRuntime>(nullptr);
  const auto storage = arrays::open_storage(options);
  ASSERT_TRUE(storage.ok()) << storage.message();
  arrays::Catalog catalog(*storage.value());
  ASSERT_TRUE(catalog.load().ok());
  entry.id = 1;
  entry.name = "it";
  if (entry.value.empty()) entry.offset = catalog.find_room(1 << 20, true);
  arrays::Change change;
  change.put.push_back(entry);
  ASSERT_TRUE(catalog.append(change, true).ok());
}

// Whoever loads a text has room for its first dimension only.
TEST(ForgedContainers, ATextHasOneDimension) {
  const scene::Folder folder;
  int number = 0;
  for (const char* const type : {"text", "object"})
    for (const Dims& dims : {Dims{1, 100'000}, Dims{1, 1000}, Dims{}}) {
      const std::string path = folder.path() + "/" + std::to_string(number++) + ".oca";
      arrays::Entry entry;
      entry.type = {type, 1};
      entry.dims = dims;
      if (dims.empty() || dims[1] < 100'000)
        entry.value.resize(dims.empty() ? 1 : 1000, 'x');
      else
        entry.size_bytes = 1 << 20;
      forge(path, entry);
      const auto in = Arrays::open(path);
      EXPECT_EQ(in.code(), EIO) << type << arrays::text_of(dims);
      if (in.ok()) static_cast<void>(in->load<std::string>("it"));
    }
}

// Its tiles, of which there are none, would be those before the first one.
TEST(ForgedContainers, AnArrayWithoutElementsHasNoPlace) {
  const scene::Folder folder;
  for (const std::string compress : {"", "zstd:3", "lz4"}) {
    const std::string path = folder.path() + "/" + compress + ".oca";
    arrays::Entry entry;
    entry.type = {"|u1", 1};
    entry.dims = {0};
    entry.tiles = {512};
    entry.compress = compress;
    entry.size_bytes = 4096;
    forge(path, entry);
    const auto in = Arrays::open(path);
    EXPECT_EQ(in.code(), EIO) << compress;
    if (in.ok()) static_cast<void>(in->verify("", {}));
  }
}

// What is made here is never refused so: it has no place.
TEST(ForgedContainers, AnArrayWithoutElementsThatWasStoredIsThere) {
  const scene::Folder folder;
  const std::string path = folder.path() + "/a.oca";
  Arrays out = Arrays::open(path, ArraysMode::kWrite).value();
  for (const std::string compress : {"", "zstd", "lz4"})
    for (const Dims& tiles : {Dims{}, Dims{512, 4}}) {
      ArrayOptions options;
      options.compress = compress;
      options.tiles = tiles;
      const std::string name = compress + std::to_string(tiles.size());
      ASSERT_TRUE(out.store_whole("s" + name, {"<f8", 8}, {0, 9}, nullptr, options).ok());
      ASSERT_TRUE(out.alloc("a" + name, {"<f8", 8}, {9, 0}, options).ok());
    }
  ASSERT_TRUE(out.close().ok());
  const auto in = Arrays::open(path);
  ASSERT_TRUE(in.ok()) << in.message();
  EXPECT_EQ(in->list().size(), 12u);
  EXPECT_EQ(in->verify("", {})->damages, 0u);
}

TEST(ForgedContainers, ATextOfTwoDimensionsIsNotStored) {
  const scene::Folder folder;
  Arrays out = Arrays::open(folder.path() + "/a.oca", ArraysMode::kWrite).value();
  const std::string bytes(1024, 'x');
  for (const char* const type : {"text", "object"})
    for (const Dims& dims : {Dims{4, 256}, Dims{}}) {
      const Status s = out.store_whole("it", {type, 1}, dims, bytes.data());
      ASSERT_EQ(s.code(), EINVAL) << type;
      EXPECT_THAT(s.message(), HasSubstr("one dimension"));
      EXPECT_EQ(out.alloc("it", {type, 1}, dims).code(), EINVAL);
    }
  EXPECT_FALSE(out.has("it"));
}

// OUTCORE_TEST_SHARE=N: one part in N of them.
TEST(ForgedRecords, AreRefusedOrMakeSense) {
  arrays::Change change;
  arrays::Entry entry;
  entry.id = 7;
  entry.name = "temperature";
  entry.type = {"<f8", 8};
  entry.dims = {100, 200};
  entry.tiles = {16, 16};
  entry.offset = 1 << 20;
  entry.size_bytes = 112 * 208 * 8;
  entry.attributes["unit"] = "K";
  change.put.push_back(entry);
  change.remove = {1, 2};
  change.has_session = true;
  const std::vector<uint8_t> record = arrays::encode(change);
  ASSERT_TRUE(arrays::decode(record).ok()) << arrays::decode(record).message();
  std::mt19937 random(11);
  const uint64_t count = scene::share_of(50'000);
  uint64_t refused = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::vector<uint8_t> forged = record;
    for (unsigned n = 1 + random() % 4; n > 0; --n)
      forged[random() % forged.size()] = static_cast<uint8_t>(random());
    if (random() % 8 == 0) forged.resize(random() % forged.size());
    const auto decoded = arrays::decode(forged);
    refused += decoded.ok() ? 0 : 1;
    if (!decoded) continue;
    for (const arrays::Entry& one : decoded->put) {
      const uint64_t least = arrays::bytes_of(one);
      EXPECT_TRUE(one.is_inline() || one.size_bytes >= least);
      EXPECT_LE(one.offset, arrays::kBytesMax);
    }
  }
  EXPECT_GT(refused, count / 5);
}

}  // namespace
}  // namespace outcore
