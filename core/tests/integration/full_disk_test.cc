// A full disk as a program experiences it: a small filesystem in memory.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "core/tests/conformance/scene.h"

namespace outcore {
namespace {

using namespace scene;

class FullDisk : public testing::Test {
 protected:
  static constexpr uint64_t kDiskBytes = 4 * kMiB, kFileBytes = 16 * kMiB, kBudgetBytes = 2 * kMiB;

  void SetUp() override {
    if (::mount("none", folder_.path().c_str(), "tmpfs", 0, "size=4m") != 0)
      GTEST_SKIP() << "mounting a small filesystem needs root: " << std::strerror(errno);
    is_mounted_ = true;
    write_file(name_, Bytes(1));
    std::filesystem::resize_file(name_, kFileBytes);
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  void make_room() {
    ASSERT_EQ(::mount("none", folder_.path().c_str(), "tmpfs", MS_REMOUNT, "size=64m"), 0)
        << std::strerror(errno);
  }

  const Folder folder_;
  const std::string name_ = folder_ / "data";
  bool is_mounted_ = false;
};

TEST_F(FullDisk, IsToldByTheCallThatNeedsRoomAndNothingIsLost) {
  RuntimeOptions options = options_with(kBudgetBytes);
  options.wait_ms_max = 3'600'000;  // a thread that waits, waits longer than any test may take
  Runtime runtime = Runtime::start(options).value();
  MapOptions writing;
  writing.access = Access::kReadWrite;
  Region region = runtime.map(name_, writing).value();
  const Bytes page = pattern(4096);
  uint64_t at = 0;
  Status failed;
  for (; at < kFileBytes && failed.ok(); at += page.size()) failed = region.write(at, page);
  ASSERT_EQ(failed.code(), ENOSPC) << failed.message();
  at -= page.size();
  EXPECT_GT(at, kDiskBytes) << "the disk is full, and so is memory";
  EXPECT_LT(at, kDiskBytes + kBudgetBytes);
  EXPECT_NE(failed.message().find(name_), std::string::npos) << failed.message();
  EXPECT_NE(failed.message().find("make room"), std::string::npos) << failed.message();
  EXPECT_EQ(write_of(region.data() + at, std::byte{1}).signal, SIGBUS);
  EXPECT_EQ(region.flush().code(), ENOSPC);
  EXPECT_EQ(region.unmap().code(), ENOSPC);
  ASSERT_TRUE(region.is_mapped());

  make_room();
  const Status told = region.flush();
  EXPECT_TRUE(told.ok()) << "there is room: " << told.message();
  EXPECT_FALSE(region.metrics().is_degraded);
  for (; at < kFileBytes; at += page.size()) {
    const Status s = region.write(at, page);
    ASSERT_TRUE(s.ok()) << at << ": " << s.message();
  }
  ASSERT_TRUE(region.unmap().ok());
  const Bytes stored = read_file(name_);
  ASSERT_EQ(stored.size(), kFileBytes);
  for (uint64_t i = 0; i < kFileBytes; i += page.size())
    ASSERT_EQ(std::memcmp(stored.data() + i, page.data(), page.size()), 0) << i;
}

// A disk that a file of another program fills: ext4, where transfers bypass the kernel's cache and
// space is reserved before it is allocated.
class FullExt4 : public testing::Test {
 protected:
  static constexpr uint64_t kDiskBytes = 48 * kMiB, kFileBytes = 24 * kMiB, kBudgetBytes = 4 * kMiB;

  void SetUp() override {
    const std::string image = folder_ / "image";
    write_file(image, Bytes(1));
    std::filesystem::resize_file(image, kDiskBytes);
    std::filesystem::create_directory(at_);
    const std::string make = "(mkfs.ext4 -q -m 0 " + image + " && mount -o loop " + image + " " +
                             at_ + ") >/dev/null 2>&1";
    if (::geteuid() != 0 || std::system(make.c_str()) != 0)
      GTEST_SKIP() << "a filesystem in a file needs root, mkfs.ext4 and a loop device";
    is_mounted_ = true;
    write_file(name_, Bytes(1));
    std::filesystem::resize_file(name_, kFileBytes);
  }
  void TearDown() override {
    if (is_mounted_) ::umount2(at_.c_str(), MNT_DETACH);
  }
  // All but a few MiB.
  void fill_disk() {
    const int fd = ::open(filler_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const uint64_t bytes = std::filesystem::space(at_).available - kRoomBytes;
    ASSERT_EQ(::posix_fallocate(fd, 0, static_cast<off_t>(bytes)), 0);
    ::close(fd);
  }

  static constexpr uint64_t kRoomBytes = 8 * kMiB;
  const Folder folder_;
  const std::string at_ = folder_ / "disk", name_ = at_ + "/data", filler_ = at_ + "/filler";
  bool is_mounted_ = false;
};

TEST_F(FullExt4, AFlushSucceedsAsSoonAsThereIsRoomAgain) {
  fill_disk();
  RuntimeOptions options = options_with(kBudgetBytes);
  options.wait_ms_max = 3'600'000;
  Runtime runtime = Runtime::start(options).value();
  MapOptions writing;
  writing.access = Access::kReadWrite;
  Region region = runtime.map(name_, writing).value();
  const Bytes page = pattern(4096);
  uint64_t at = 0;
  Status failed;
  while (at < kFileBytes && (failed = region.write(at, page)).ok()) at += page.size();
  ASSERT_EQ(failed.code(), ENOSPC) << failed.message();
  ASSERT_TRUE(region.metrics().is_degraded);

  ASSERT_TRUE(std::filesystem::remove(filler_));
  const Status told = region.flush();
  EXPECT_TRUE(told.ok()) << told.message();
  EXPECT_FALSE(region.metrics().is_degraded);
  for (; at < kFileBytes; at += page.size()) ASSERT_TRUE(region.write(at, page).ok()) << at;
  const Status unmapped = region.unmap();
  ASSERT_TRUE(unmapped.ok()) << unmapped.message();
  const Bytes stored = read_file(name_);
  ASSERT_EQ(stored.size(), kFileBytes);
  for (uint64_t i = 0; i < kFileBytes; i += page.size())
    ASSERT_EQ(std::memcmp(stored.data() + i, page.data(), page.size()), 0) << i;
}

}  // namespace
}  // namespace outcore
