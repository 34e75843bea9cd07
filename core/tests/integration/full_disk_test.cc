// A disk that is full, as a program meets it: a small filesystem in memory.
#include <gtest/gtest.h>
#include <sys/mount.h>

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
  options.wait_ms_max = 3'600'000;  // who waits, waits for longer than any test may take
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
  EXPECT_TRUE(told.ok() || told.code() == ENOSPC) << told.message();
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

}  // namespace
}  // namespace outcore
