// What is specific to the sparse store: segments, metadata, descriptors.
#include "core/store/sparse_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "core/store/descriptor_cache.h"
#include "core/tests/store/store_case.h"

namespace outcore::store_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<std::shared_ptr<Store>> open_sparse(const Folder& folder, const std::string& parameters = "",
                                           uint64_t size_bytes = 0, bool may_create = true) {
  OpenOptions options;
  options.is_writable = options.may_create = may_create;
  options.size_bytes = size_bytes;
  return open_store("sparse:" + (folder / "s") + parameters, options);
}

std::vector<std::string> names_in(const Folder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "s"))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(SparseStore, ASegmentIsMadeByItsFirstWriteAndNotByReads) {
  const Folder folder;
  auto store = open_sparse(folder, "?segment=64k", 10 << 20).value();
  Bytes bytes(300'000);
  EXPECT_EQ(store->read(0, bytes), 0);
  EXPECT_TRUE(store->is_hole(0, 10 << 20));
  EXPECT_THAT(names_in(folder), ElementsAre("outcore-sparse.json"));
  ASSERT_EQ(store->write((64 << 10) * 0x12 + 5, random_bytes(10, 1)), 0);
  EXPECT_THAT(names_in(folder), ElementsAre("outcore-sparse.json", "segment.000000000012"));
  EXPECT_FALSE(store->is_hole((64 << 10) * 0x12, 4096));
  EXPECT_TRUE(store->is_hole(0, (64 << 10) * 0x12));
}

TEST(SparseStore, AWriteAcrossSegmentsIsSplitAndReadBackByAnother) {
  const Folder folder;
  const Bytes bytes = random_bytes(50'000, 2);
  {
    auto store = open_sparse(folder, "?segment=16k", 1 << 20).value();
    ASSERT_EQ(store->write(16'000, bytes), 0);
    ASSERT_EQ(store->sync(), 0);
  }
  EXPECT_EQ(names_in(folder).size(), 6u);
  auto store = open_sparse(folder, "", 0, false).value();
  EXPECT_EQ(store->size_bytes(), 1u << 20);
  Bytes back(50'000);
  ASSERT_EQ(store->read(16'000, back), 0);
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(store->write(0, back), -EACCES);
}

TEST(SparseStore, WhatAnotherObjectWritesIsSeen) {
  const Folder folder;
  auto reader = open_sparse(folder, "?segment=16k", 1 << 20).value();
  auto writer = open_sparse(folder).value();
  EXPECT_EQ(reader->identity(), writer->identity());
  Bytes back(5000);
  ASSERT_EQ(reader->read(40'000, back), 0);
  const Bytes bytes = random_bytes(5000, 3);
  ASSERT_EQ(writer->write(40'000, bytes), 0);
  ASSERT_EQ(reader->read(40'000, back), 0);
  EXPECT_EQ(back, bytes);
}

TEST(SparseStore, MoreSegmentsThanDescriptorsAreServed) {
  const Folder folder;
  constexpr uint64_t kSegment = 4096;
  constexpr uint64_t kCount = store::DescriptorCache::kCountMax * 3;
  auto store = open_sparse(folder, "?segment=4k", kCount * kSegment).value();
  const Bytes bytes = random_bytes(kCount * kSegment, 4);
  AlignedBytes buffer(bytes.size());
  std::copy(bytes.begin(), bytes.end(), buffer.data());
  std::vector<StoreRequest> batch;
  for (uint64_t i = 0; i < kCount; ++i)
    batch.push_back({i * kSegment, buffer.data() + i * kSegment, kSegment, true, 77});
  store->transfer(batch);
  for (const StoreRequest& r : batch) ASSERT_EQ(r.result, 0);
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    count += std::filesystem::read_symlink(entry.path(), ignored).string().find("segment.") !=
             std::string::npos;
  }
  EXPECT_GT(count, 0u);
  EXPECT_LE(count, store::DescriptorCache::kCountMax);
  std::vector<std::thread> threads;
  std::atomic<int> wrong_count{0};
  for (uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      Bytes back(3 * kSegment);
      for (int turn = 0; turn < 2000; ++turn) {
        const uint64_t at = random() % ((kCount - 3) * kSegment);
        wrong_count +=
            store->read(at, back) != 0 ||
            !std::equal(back.begin(), back.end(), bytes.begin() + static_cast<ptrdiff_t>(at));
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong_count, 0);
  EXPECT_EQ(store->sync(), 0);
}

TEST(SparseStore, ThreadsThatWriteOneNewSegmentMakeItOnce) {
  const Folder folder;
  auto store = open_sparse(folder, "?segment=64k", 64 * (64 << 10)).value();
  const Bytes bytes = random_bytes(64 * (64 << 10), 5);
  std::vector<std::thread> threads;
  std::atomic<int> wrong_count{0};
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t segment = 0; segment < 64; ++segment) {
        const size_t at = segment * (64 << 10) + t * (16 << 10);
        wrong_count += store->write(at, std::span(bytes).subspan(at, 16 << 10)) != 0;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong_count, 0);
  Bytes back(bytes.size());
  ASSERT_EQ(store->read(0, back), 0);
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(names_in(folder).size(), 65u);
}

TEST(SparseStore, ASegmentCutShortIsAnError) {
  const Folder folder;
  auto store = open_sparse(folder, "?segment=64k", 1 << 20).value();
  ASSERT_EQ(store->write(0, random_bytes(65536, 6)), 0);
  std::filesystem::resize_file(folder / "s/segment.000000000000", 5000);
  Bytes back(8192);
  EXPECT_EQ(store->read(0, back), -EIO);
}

TEST(SparseStore, GrowingIsKeptInTheMetadata) {
  const Folder folder;
  ASSERT_EQ(open_sparse(folder, "", 5000).value()->resize(123'456), 0);
  EXPECT_EQ(open_sparse(folder, "", 0, false).value()->size_bytes(), 123'456u);
  EXPECT_EQ(open_sparse(folder, "", 200'000).value()->size_bytes(), 200'000u);
  EXPECT_EQ(open_sparse(folder, "", 0, false).value()->size_bytes(), 200'000u);
  const auto refused = open_sparse(folder, "", 200'001, false);
  EXPECT_THAT(refused.message(), HasSubstr("it has 200000 bytes, 200001 are asked for"));
}

TEST(SparseStore, OtherSegmentSizesAreRefused) {
  const Folder folder;
  ASSERT_TRUE(open_sparse(folder, "?segment=1M", 5000).ok());
  EXPECT_TRUE(open_sparse(folder, "?segment=1024k").ok());
  EXPECT_THAT(open_sparse(folder, "?segment=2M").message(),
              HasSubstr("it has segments of 1 MiB, 2 MiB are asked for"));
  EXPECT_THAT(open_sparse(folder, "?segment=5000").message(), HasSubstr("power of two"));
  EXPECT_THAT(open_sparse(folder, "?segment=1k").message(), HasSubstr("power of two"));
  EXPECT_THAT(open_sparse(folder, "?segment=0").message(), HasSubstr("power of two"));
}

TEST(SparseStore, TooManySegmentsAreRefusedWithTheSizeThatWouldDo) {
  const Folder folder;
  const auto refused = open_sparse(folder, "?segment=4k", uint64_t{1} << 40);
  EXPECT_EQ(refused.code(), EINVAL);
  EXPECT_THAT(refused.message(), HasSubstr("segment=16384 at least"));
  EXPECT_TRUE(open_sparse(folder, "?segment=16384", uint64_t{1} << 40).ok());
}

TEST(SparseStore, CorruptOrNewerMetadataIsRefused) {
  const Folder folder;
  std::filesystem::create_directory(folder / "s");
  const auto message_of = [&](const std::string& text) {
    write_file(folder / "s/outcore-sparse.json", text);
    const auto refused = open_sparse(folder);
    EXPECT_EQ(refused.code(), EINVAL);
    return refused.ok() ? "" : refused.message();
  };
  const std::string good =
      R"({"format":"outcore-sparse","version":1,"size_bytes":10,"segment_bytes":4096})";
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_THAT(message_of(good.substr(0, length)), HasSubstr("is corrupt"));
  EXPECT_THAT(message_of("[1]"), HasSubstr("is corrupt"));
  EXPECT_THAT(message_of(R"({"format":"other","version":1,"size_bytes":10,"segment_bytes":4096})"),
              HasSubstr("'format' is \"other\" and must be outcore-sparse"));
  EXPECT_THAT(
      message_of(R"({"format":"outcore-sparse","version":1,"size_bytes":-1,"segment_bytes":4096})"),
      HasSubstr("'size_bytes' is -1 and must be a whole number, 0 or more"));
  EXPECT_THAT(
      message_of(R"({"format":"outcore-sparse","version":1,"size_bytes":10,"segment_bytes":4097})"),
      HasSubstr("power of two"));
  EXPECT_THAT(
      message_of(R"({"format":"outcore-sparse","version":2,"size_bytes":10,"segment_bytes":4096})"),
      HasSubstr("has version 2, this Outcore knows 1"));
  write_file(folder / "s/outcore-sparse.json", good);
  EXPECT_EQ(open_sparse(folder).value()->size_bytes(), 10u);
}

TEST(SparseStore, AFolderOfOtherThingsIsRefused) {
  const Folder folder;
  EXPECT_EQ(open_sparse(folder, "", 0, false).code(), ENOENT);
  std::filesystem::create_directory(folder / "s");
  EXPECT_THAT(open_sparse(folder, "", 0, false).message(), HasSubstr("create one first"));
  write_file(folder / "s/letter.txt", std::string("dear"));
  EXPECT_THAT(open_sparse(folder).message(), HasSubstr("is not empty"));
  write_file(folder / "f", std::string("dear"));
  EXPECT_THAT(open_store("sparse:" + (folder / "f")).message(), HasSubstr("it is a file"));
}

TEST(DescriptorCache, AHeldDescriptorIsNeverClosed) {
  store::DescriptorCache cache;
  const auto held = cache.keep(1, ::dup(0));
  ASSERT_GE(held.fd, 0);
  for (uint64_t key = 2; key < 2000; ++key) cache.release(cache.keep(key, ::dup(0)));
  EXPECT_EQ(cache.close_idle(), store::DescriptorCache::kCountMax - 1);
  const auto again = cache.find(1);
  EXPECT_EQ(again.fd, held.fd);
  cache.release(again);
  cache.release(held);
  EXPECT_EQ(cache.close_idle(), 1u);
  EXPECT_EQ(cache.find(1).fd, -1);
}

TEST(DescriptorCache, WithAllEntriesHeldADescriptorLivesUntilReleased) {
  store::DescriptorCache cache;
  std::vector<store::DescriptorCache::Lease> leases;
  bool has_overflowed = false;
  for (uint64_t key = 0; key < 600; ++key) {
    leases.push_back(cache.keep(key, ::dup(0)));
    ASSERT_GE(leases.back().fd, 0) << "raise the limit of open files to 1024";
    has_overflowed = has_overflowed || leases.back().ticket < 0;
  }
  EXPECT_TRUE(has_overflowed);
  for (const auto lease : leases) cache.release(lease);
}

}  // namespace
}  // namespace outcore::store_test
