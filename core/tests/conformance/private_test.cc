// Private regions: changes are the region's own.
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class PrivateRegion : public OnMechanism {
 protected:
  RuntimeOptions options() const override {
    RuntimeOptions options = OnMechanism::options();
    options.scratch_dir = folder_.path();
    return options;
  }
};
OUTCORE_ON_ALL_MECHANISMS(PrivateRegion);

TEST_P(PrivateRegion, NeverReachesTheFileAndSurvivesEviction) {
  const uint64_t size = data_bytes() + 1234;
  const std::string path = file_of(size);
  Region region = map(path, Access::kPrivate).value();
  Bytes expected = pattern(size);
  for (uint64_t at = 10; at < size; at += 4096 * 3) {
    region.data()[at] = std::byte{0xEE};
    expected[at] = std::byte{0xEE};
  }
  evict_all(region);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), region.data()));
  EXPECT_TRUE(region.flush().ok());
  EXPECT_TRUE(region.sync().ok());
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_TRUE(read_file(path) == pattern(size));
}

TEST_P(PrivateRegion, TwoPrivateRegionsOfOneFileAreStrangers) {
  const std::string path = file_of(2 * page_bytes());
  Region a = map(path, Access::kPrivate).value();
  Region b = map(path, Access::kPrivate).value();
  Region file = map(path, Access::kReadOnly).value();
  a.data()[5] = std::byte{1};
  b.data()[5] = std::byte{2};
  evict_all(a), evict_all(b);
  EXPECT_EQ(a.data()[5], std::byte{1});
  EXPECT_EQ(b.data()[5], std::byte{2});
  EXPECT_EQ(file.data()[5], byte_at(5));
  EXPECT_EQ(a.data()[6], byte_at(6));
}

TEST_P(PrivateRegion, SeesWhatAWritableRegionWroteBeforeTheMap) {
  const std::string path = file_of(2 * page_bytes());
  const Region shared = map(path, Access::kReadWrite).value();
  shared.data()[page_bytes()] = std::byte{0x33};
  const Region own = map(path, Access::kPrivate).value();
  EXPECT_EQ(own.data()[page_bytes()], std::byte{0x33});
}

TEST_P(PrivateRegion, DiscardLeavesTheFileAlone) {
  const std::string path = file_of(4 * page_bytes());
  Region region = map(path, Access::kPrivate).value();
  region.data()[page_bytes()] = std::byte{1};
  ASSERT_TRUE(region.discard(page_bytes(), page_bytes()).ok());
  evict_all(region);
  for (uint64_t i = 0; i < page_bytes(); ++i)
    ASSERT_EQ(region.data()[page_bytes() + i], std::byte{0}) << i;
  EXPECT_EQ(region.data()[0], byte_at(0));
  EXPECT_TRUE(region.unmap().ok());
  EXPECT_TRUE(read_file(path) == pattern(4 * page_bytes()));
}

TEST_P(PrivateRegion, WithAnOffsetKeepsItsChanges) {
  const std::string path = file_of(8 * page_bytes());
  MapOptions options = map_options(Access::kPrivate);
  options.offset = 3 * page_bytes() + 4096;
  Region region = runtime_->map(path, options).value();
  const uint64_t size = region.size_bytes();
  ASSERT_EQ(size, 8 * page_bytes() - options.offset);
  region.data()[0] = region.data()[size - 1] = std::byte{0xAB};
  evict_all(region);
  EXPECT_EQ(region.data()[0], std::byte{0xAB});
  EXPECT_EQ(region.data()[size - 1], std::byte{0xAB});
  EXPECT_EQ(first_difference(region.data() + 1, size - 2, options.offset + 1), size - 2);
}

TEST_P(PrivateRegion, NoScratchSpaceIsAnErrorOfTheMap) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const std::string path = file_of(data_bytes());
  const std::string small = folder_ / "small";
  std::filesystem::create_directory(small);
  const Ending ending = in_child([&] {  // a small filesystem is mounted, visible in the child only
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("small", small.c_str(), "tmpfs", 0, "size=1m") != 0)
      return 77;
    RuntimeOptions o = options();
    o.scratch_dir = small;
    Runtime runtime = Runtime::start(o).value();
    const Result<Region> region = runtime.map(path, map_options(Access::kPrivate));
    require(!region.ok() && region.code() == ENOSPC, "ENOSPC: " + region.status().message());
    MapOptions part = map_options(Access::kPrivate);
    part.size_bytes = 512 * kKiB;
    require(runtime.map(path, part).ok(), "what was reserved for the failed map is given back");
    return 0;
  });
  if (ending.has_exited(77)) GTEST_SKIP() << "needs to mount a small file system: run as root";
  EXPECT_TRUE(ending.has_exited(0)) << ending;
}

}  // namespace
}  // namespace outcore
