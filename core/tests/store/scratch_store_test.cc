// What is specific to the scratch store: it has no name, and reserves its space in advance.
#include "core/store/scratch_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>

#include "core/tests/store/store_case.h"

namespace outcore::store_test {
namespace {

using testing::HasSubstr;

Result<std::shared_ptr<Store>> open_scratch(const std::string& folder, uint64_t size_bytes) {
  OpenOptions options;
  options.size_bytes = size_bytes;
  options.scratch_dir = folder;
  return open_store("scratch:", options);
}

uint64_t free_bytes(const std::string& folder) {
  struct statvfs space;
  return ::statvfs(folder.c_str(), &space) == 0 ? uint64_t{space.f_bfree} * space.f_frsize : 0;
}

// A tmpfs of 1 MiB, if the process may mount it.
class TinyDisk : public testing::Test {
 protected:
  void SetUp() override {
    if (::mount("tmpfs", folder_.path().c_str(), "tmpfs", 0, "size=1m") != 0)
      GTEST_SKIP() << "needs root to mount a tmpfs";
    is_mounted_ = true;
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  Folder folder_;
  bool is_mounted_ = false;
};

TEST(ScratchStore, ItHasNoName) {
  const Folder folder;
  auto store = open_scratch(folder.path(), 1 << 20).value();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_TRUE(store->traits().is_volatile);
  EXPECT_EQ(store->identity(), "");
}

TEST(ScratchStore, AnImpossibleSizeIsRefusedWithWhatIsFree) {
  const Folder folder;
  const auto refused = open_scratch(folder.path(), uint64_t{1} << 60);
  EXPECT_EQ(refused.code(), ENOSPC);
  EXPECT_THAT(refused.message(), HasSubstr("reserve 1024 PiB of scratch in " + folder.path()));
  EXPECT_THAT(refused.message(), HasSubstr(" free)"));
  EXPECT_THAT(refused.message(), HasSubstr("scratch_dir"));
}

TEST(ScratchStore, AFolderThatIsNotThereIsRefused) {
  const auto refused = open_scratch("/no/such/folder", 4096);
  EXPECT_EQ(refused.code(), ENOENT);
  EXPECT_THAT(refused.message(), HasSubstr("make a scratch file in /no/such/folder"));
}

TEST(ScratchStore, TheFolderOfTheUriGoesBeforeTheOption) {
  const Folder folder;
  OpenOptions options;
  options.scratch_dir = "/no/such/folder";
  EXPECT_EQ(open_store("scratch:" + folder.path(), options).value()->uri(),
            "scratch:" + folder.path());
}

TEST(ScratchStore, WhatWasNeverWrittenIsAHole) {
  const Folder folder;
  auto store = open_scratch(folder.path(), 1 << 20).value();
  EXPECT_TRUE(store->is_hole(0, 1 << 20));
  ASSERT_EQ(store->write(200'000, random_bytes(10, 1)), 0);
  EXPECT_TRUE(store->is_hole(0, 4096));
  EXPECT_FALSE(store->is_hole(196'608, 4096));
  ASSERT_EQ(store->discard(0, 1 << 20), 0);
  EXPECT_TRUE(store->is_hole(0, 1 << 20));
}

TEST_F(TinyDisk, SpaceIsReservedWhenOpenedAndFreedWhenClosed) {
  const uint64_t before = free_bytes(folder_.path());
  {
    auto store = open_scratch(folder_.path(), 512 << 10).value();
    EXPECT_LE(free_bytes(folder_.path()), before - (512 << 10));
    const auto second = open_scratch(folder_.path(), 768 << 10);
    EXPECT_EQ(second.code(), ENOSPC);
    EXPECT_THAT(second.message(), HasSubstr("reserve 768 KiB"));
    EXPECT_EQ(store->resize(2 << 20), -ENOSPC);
    EXPECT_EQ(store->size_bytes(), 512u << 10);
  }
  EXPECT_EQ(free_bytes(folder_.path()), before);
}

TEST_F(TinyDisk, DiscardedSpaceStaysReserved) {
  auto store = open_scratch(folder_.path(), 512 << 10).value();
  const Bytes bytes = random_bytes(512 << 10, 2);
  ASSERT_EQ(store->write(0, bytes), 0);
  ASSERT_EQ(store->discard(0, 512 << 10), 0);
  write_file(folder_ / "filler", random_bytes(1 << 20, 3));  // as much as fits
  ASSERT_EQ(free_bytes(folder_.path()), 0u);
  ASSERT_EQ(store->write(0, bytes), 0);
  Bytes back(512 << 10);
  ASSERT_EQ(store->read(0, back), 0);
  EXPECT_EQ(back, bytes);
}

}  // namespace
}  // namespace outcore::store_test
