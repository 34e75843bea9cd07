// What is specific to the file store: sizes, errors, holes, descriptors, direct I/O.
#include "core/store/file_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "core/tests/store/store_case.h"

namespace {

int next_sync_error = 0;  // the kernel reports it once

int fail_once() {
  const int error = std::exchange(next_sync_error, 0);
  return error == 0 ? 0 : (errno = error, -1);
}

}  // namespace

// The library's calls of fsync come here.
extern "C" int fsync(int fd) {
  return fail_once() != 0 ? -1 : static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int fdatasync(int fd) {
  return fail_once() != 0 ? -1 : static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace outcore::store_test {
namespace {

using testing::HasSubstr;

OpenOptions to_create(uint64_t size_bytes) {
  OpenOptions options;
  options.is_writable = options.may_create = true;
  options.size_bytes = size_bytes;
  return options;
}

size_t open_descriptor_count() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    count += entry.exists() || true;
  return count;
}

TEST(FileStore, AFileCutShortUnderUsIsAnErrorAndNoZeros) {
  const Folder folder;
  write_file(folder / "f", random_bytes(100'000, 1));
  for (const char* direct : {"auto", "off"}) {
    std::filesystem::resize_file(folder / "f", 100'000);
    auto store = open_file("file:" + (folder / "f") + "?direct=" + direct);
    std::filesystem::resize_file(folder / "f", 50'000);
    AlignedBytes page(65536);
    EXPECT_EQ(store->read(32768, page.span()), -EIO);
    EXPECT_EQ(store->read(49'999, page.span().first(2)), -EIO);
    EXPECT_EQ(store->read(0, page.span().first(50'000)), 0);
    EXPECT_FALSE(store->is_hole(65536, 4096));
  }
}

// It would grow again, with zeros in the place of what was cut off.
TEST(FileStore, AFileThatOthersHaveCutIsNotWrittenPastItsEnd) {
  const Folder folder;
  for (const char* direct : {"auto", "off"}) {
    write_file(folder / "f", random_bytes(1 << 20, 3));
    OpenOptions writable;
    writable.is_writable = true;
    auto store = open_file("file:" + (folder / "f") + "?direct=" + direct, writable);
    AlignedBytes page(16384);
    ASSERT_EQ(store->write(0, page.span()), 0);
    std::filesystem::resize_file(folder / "f", 500'000);
    EXPECT_EQ(store->write(0, page.span()), 0);
    EXPECT_EQ(store->sync(), 0);
    StoreRequest batch[] = {{0, page.data(), 4096, false, 77},
                            {8192, page.data() + 4096, 4096, true, 77},
                            {499'712, page.data() + 8192, 4096, true, 77}};
    store->transfer(batch);
    EXPECT_EQ(batch[0].result, 0);
    EXPECT_EQ(batch[1].result, 0);
    EXPECT_EQ(batch[2].result, -EIO);
    EXPECT_EQ(store->write((1 << 20) - 16384, page.span()), -EIO);
    std::fill(page.span().begin(), page.span().end(), std::byte{0x5A});
    EXPECT_EQ(store->write(491'520, page.span()), -EIO);
    std::fill(page.span().begin(), page.span().end(), std::byte{0});
    ASSERT_EQ(store->read(491'520, page.span().first(500'000 - 491'520)), 0);
    EXPECT_EQ(std::count(page.span().begin(), page.span().end(), std::byte{0x5A}),
              500'000 - 491'520)
        << "what lies before the end is stored";
    EXPECT_NE(store->reserve((1 << 20) - 4096, 4096), 0);
    EXPECT_EQ(std::filesystem::file_size(folder / "f"), 500'000u);
    EXPECT_EQ(store->sync(), -EIO);
    std::filesystem::resize_file(folder / "f", 1 << 20);
    EXPECT_EQ(store->write(0, page.span()), 0) << "so that what is in memory can be saved";
    EXPECT_EQ(store->sync(), -EIO) << "what was cut off is lost";
  }
}

TEST(FileStore, WhatItMakesShorterItselfIsNoCut) {
  const Folder folder;
  auto store = open_file(folder / "f", to_create(1 << 20));
  AlignedBytes page(16384);
  ASSERT_EQ(store->resize(500'000), 0);
  EXPECT_EQ(store->write(0, page.span()), 0);
  EXPECT_EQ(store->sync(), 0);
  ASSERT_EQ(store->resize(1 << 20), 0);
  EXPECT_EQ(store->write((1 << 20) - 16384, page.span()), 0);
  EXPECT_EQ(store->sync(), 0);
}

TEST(FileStore, InABatchOnlyTheRequestsPastTheCutFail) {
  const Folder folder;
  const Bytes bytes = random_bytes(1 << 20, 2);
  write_file(folder / "f", bytes);
  auto store = open_file(folder / "f");
  std::filesystem::resize_file(folder / "f", 500'000);
  AlignedBytes buffer(1 << 20);
  std::vector<StoreRequest> batch;
  for (size_t at = 0; at < bytes.size(); at += 16384)
    batch.push_back({at, buffer.data() + at, 16384, false, 77});
  store->transfer(batch);
  for (const StoreRequest& r : batch) {
    EXPECT_EQ(r.result, r.offset + 16384 <= 500'000 ? 0 : -EIO) << r.offset;
    if (r.result == 0) {
      EXPECT_TRUE(
          std::equal(r.bytes, r.bytes + 16384, bytes.begin() + static_cast<ptrdiff_t>(r.offset)));
    }
  }
}

TEST(FileStore, AFileIsCreatedAndExtendedOnlyIfAllowed) {
  const Folder folder;
  EXPECT_EQ(open_store(folder / "f").code(), ENOENT);
  open_file(folder / "f", to_create(10'000));
  EXPECT_EQ(std::filesystem::file_size(folder / "f"), 10'000u);
  OpenOptions larger;
  larger.is_writable = true;
  larger.size_bytes = 10'001;
  const auto refused = open_store(folder / "f", larger);
  EXPECT_EQ(refused.code(), EINVAL);
  EXPECT_THAT(refused.message(), HasSubstr("it has 10000 bytes, 10001 are asked for"));
  EXPECT_EQ(open_file(folder / "f", to_create(20'000))->size_bytes(), 20'000u);
  EXPECT_EQ(open_file(folder / "f", to_create(5))->size_bytes(), 20'000u);
}

TEST(FileStore, AFileThatCannotBeMadeAsLargeIsNotLeftBehind) {
  const Folder folder;
  const auto refused = open_store(folder / "f", to_create(uint64_t{1} << 62));
  EXPECT_EQ(refused.code(), EFBIG);
  EXPECT_FALSE(std::filesystem::exists(folder / "f"));
}

TEST(FileStore, WhatIsNoFileIsRefusedWithTheRemedy) {
  const Folder folder;
  EXPECT_THAT(open_store(folder.path()).message(), HasSubstr("sparse:FOLDER"));
  OpenOptions writable;
  writable.is_writable = true;
  EXPECT_THAT(open_store(folder.path(), writable).message(), HasSubstr("sparse:FOLDER"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(open_store(folder / "pipe").message(), HasSubstr("FIFO"));
  EXPECT_THAT(open_store("/dev/null").message(), HasSubstr("character device"));
  EXPECT_THAT(open_store(folder / "no/such").message(), HasSubstr("check the path"));
  OpenOptions create_read_only;
  create_read_only.may_create = true;
  EXPECT_THAT(open_store(folder / "x", create_read_only).message(), HasSubstr("open it writable"));
}

TEST(FileStore, AReadOnlyStoreNeedsNoWritePermissionAndTakesNoWrites) {
  const Folder folder;
  write_file(folder / "f", random_bytes(10'000, 3));
  std::filesystem::permissions(folder / "f", std::filesystem::perms::owner_read);
  auto store = open_file(folder / "f");
  Bytes page(4096);
  EXPECT_EQ(store->read(0, page), 0);
  EXPECT_EQ(store->write(0, page), -EACCES);
  EXPECT_EQ(store->discard(0, 4096), -EACCES);
  EXPECT_EQ(store->resize(5), -EACCES);
  StoreRequest batch[] = {{0, page.data(), 10, false, 77}, {0, page.data(), 10, true, 77}};
  store->transfer(batch);
  EXPECT_EQ(batch[0].result, 0);
  EXPECT_EQ(batch[1].result, -EACCES);
}

TEST(FileStore, TmpfsIsBufferedAndSaysSo) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no tmpfs at /dev/shm";
  const Folder folder("/dev/shm");
  write_file(folder / "f", random_bytes(10'000, 4));
  auto store = open_file(folder / "f");
  EXPECT_EQ(store->remark(), "tmpfs keeps files in memory: buffered");
  EXPECT_EQ(store->traits().alignment_bytes, 1u);
  const auto refused = open_store("file:" + (folder / "f") + "?direct=on");
  EXPECT_EQ(refused.code(), EINVAL);
  EXPECT_THAT(refused.message(), HasSubstr("use direct=auto"));
}

TEST(FileStore, DirectIsOffWhenAskedAndSaysSo) {
  const Folder folder;
  write_file(folder / "f", random_bytes(10'000, 4));
  EXPECT_EQ(open_file("file:" + (folder / "f") + "?direct=off")->remark(),
            "buffered by direct=off");
}

TEST(FileStore, WhatWeMadeAndNeverWroteIsAHole) {
  const Folder folder;
  auto store = open_file(folder / "f", to_create(1 << 20));
  EXPECT_TRUE(store->is_hole(0, 1 << 20));
  ASSERT_EQ(store->write(300'000, random_bytes(100, 6)), 0);
  EXPECT_FALSE(store->is_hole(299'008, 4096));
  EXPECT_TRUE(store->is_hole(0, 4096));
  ASSERT_EQ(store->resize(2 << 20), 0);
  EXPECT_TRUE(store->is_hole(1 << 20, 1 << 20));
}

TEST(FileStore, WhatAnotherWroteIsNoHole) {
  const Folder folder;
  auto store = open_file(folder / "f", to_create(1 << 20));
  auto other = open_file(folder / "f", to_create(0));
  ASSERT_EQ(other->write(500'000, random_bytes(100, 7)), 0);
  EXPECT_FALSE(store->is_hole(499'712, 4096));
}

TEST(FileStore, AFileThatWasThereHasNoKnownHoles) {
  const Folder folder;
  open_file(folder / "f", to_create(1 << 20));
  EXPECT_FALSE(open_file(folder / "f", to_create(0))->is_hole(0, 4096));
  auto grown = open_file(folder / "f", to_create(2 << 20));
  EXPECT_FALSE(grown->is_hole(4096, 4096));
  EXPECT_TRUE(grown->is_hole(1 << 20, 4096));
}

TEST(FileStore, TwoOpensOfOneFileHaveOneIdentity) {
  const Folder folder;
  write_file(folder / "f", random_bytes(10, 8));
  write_file(folder / "g", random_bytes(10, 8));
  std::filesystem::create_hard_link(folder / "f", folder / "h");
  EXPECT_EQ(open_file(folder / "f")->identity(), open_file(folder / "h")->identity());
  EXPECT_NE(open_file(folder / "f")->identity(), open_file(folder / "g")->identity());
}

TEST(FileStore, ADiscardedRangeGivesItsSpaceBack) {
  const Folder folder;
  auto store = open_file(folder / "f", to_create(4 << 20));
  ASSERT_EQ(store->write(0, random_bytes(4 << 20, 9)), 0);
  ASSERT_EQ(store->sync(), 0);
  struct stat before;
  struct stat after;
  ASSERT_EQ(::stat((folder / "f").c_str(), &before), 0);
  ASSERT_EQ(store->discard(5, (4 << 20) - 10), 0);
  ASSERT_EQ(::stat((folder / "f").c_str(), &after), 0);
  if (after.st_blocks == before.st_blocks) GTEST_SKIP() << "the filesystem makes no holes";
  EXPECT_LT(after.st_blocks * 512, 64 << 10);
}

TEST(FileStore, ClosingLeaksNoDescriptor) {
  const Folder folder;
  write_file(folder / "f", random_bytes(10'000, 10));
  const size_t before = open_descriptor_count();
  for (int i = 0; i < 3; ++i) {
    open_file(folder / "f");
    EXPECT_FALSE(open_store(folder.path()).ok());
    OpenOptions larger;
    larger.size_bytes = 1 << 20;
    EXPECT_FALSE(open_store(folder / "f", larger).ok());
  }
  EXPECT_EQ(open_descriptor_count(), before);
}

TEST(FileStore, ItsDescriptorsDoNotSurviveExec) {
  const Folder folder;
  write_file(folder / "f", random_bytes(10'000, 10));
  auto store = open_file(folder / "f");
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    if (std::filesystem::read_symlink(entry.path(), ignored) !=
        std::filesystem::canonical(folder / "f"))
      continue;
    ++count;
    EXPECT_NE(::fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_GE(count, 1u);
}

// The bytes are not in the file, and the kernel reports it once.
TEST(LostSync, IsNeverForgotten) {
  for (const char* scheme : {"file:", "sparse:"}) {
    const Folder folder;
    const auto store = open_file(scheme + (folder / "bytes"), to_create(1 << 20));
    const std::vector<std::byte> bytes(4096, std::byte{7});
    ASSERT_EQ(store->write(0, bytes), 0);
    next_sync_error = EINTR;  // says nothing about the written bytes
    EXPECT_EQ(store->sync(), -EINTR) << scheme;
    EXPECT_EQ(store->sync(), 0) << scheme;
    ASSERT_EQ(store->write(0, bytes), 0);
    next_sync_error = EIO;
    EXPECT_EQ(store->sync(), -EIO) << scheme;
    EXPECT_EQ(store->sync(), -EIO) << scheme;
    ASSERT_EQ(store->write(4096, bytes), 0);
    EXPECT_EQ(store->sync(), -EIO) << scheme;
  }
}

}  // namespace
}  // namespace outcore::store_test
