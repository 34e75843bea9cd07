// Learnt starts of regions by themselves, and of files that are mapped again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/os/descriptor_place.h"
#include "core/prefetch/touches.h"
#include "core/tests/conformance/faulty_store.h"
#include "core/tests/integration/learnt.h"

namespace outcore {
namespace {

using namespace scene;
using testing::HasSubstr;

TEST_F(Learnt, ARegionByItselfOfARange) {
  const std::string path = make_file("a");
  Runtime runtime = Runtime::start(options_with(16 * kMiB)).value();
  {
    Region region = map(runtime, path);
    ASSERT_TRUE(region.learn(profile_).ok());
    touch(region, {10, 4000, 8000});
    ASSERT_TRUE(region.keep_learnt().ok());
    EXPECT_EQ(profile().files().size(), 1u);
  }
  Runtime next = Runtime::start(options_with(16 * kMiB)).value();
  Region region = map(next, path);
  ASSERT_TRUE(region.learn(profile_, 0, kFileBytes / 2).ok());
  wait_for_replays(next);
  EXPECT_EQ(next.metrics().counters.learnt_fills, 2u);
  touch(region, {10, 4000});
  EXPECT_EQ(next.metrics().counters.faults, 0u);
  touch(region, {8000});
  EXPECT_EQ(next.metrics().counters.faults, 1u);
}

TEST_F(Learnt, ARegionOfAPartOfTheFileIsBroughtInByOffsetsOfTheFile) {
  const std::string path = make_file("a");
  run(path, {10, 4000, 8000});
  Runtime runtime = start();
  const Region region = map(runtime, path, {.offset = 3000 * kPage, .size_bytes = 2000 * kPage});
  wait_for_replays(runtime);
  EXPECT_EQ(runtime.metrics().counters.learnt_fills, 1u);
  EXPECT_EQ(region.data()[1000 * kPage], byte_at(4000 * kPage));
  EXPECT_EQ(runtime.metrics().counters.faults, 0u);
}

TEST_F(Learnt, WhatCannotBeLearntIsRefusedWithTheReason) {
  const std::string path = make_file("a", kMiB);
  Runtime runtime = Runtime::start(options_with(16 * kMiB)).value();
  Region memory = runtime.map(std::make_shared<FaultyStore>(Bytes(kMiB)), {}).value();
  EXPECT_EQ(memory.learn(profile_).code(), ENOTSUP);
  Region region = map(runtime, path);
  EXPECT_EQ(region.learn(profile_, kMiB, 1).code(), EINVAL);
  EXPECT_EQ(region.learn("").code(), EINVAL);
  ASSERT_TRUE(region.learn(profile_).ok());
  const Status other = region.learn(folder_ / "other");
  EXPECT_EQ(other.code(), EBUSY);
  EXPECT_THAT(other.message(), HasSubstr(profile_));
  std::ofstream(folder_ / "notes") << "my own notes";
  make_file("b", kMiB);
  Region fresh = map(runtime, folder_ / "b");
  EXPECT_EQ(fresh.learn(folder_ / "notes").code(), EINVAL);
  EXPECT_EQ(Region().learn(profile_).code(), EINVAL);
  EXPECT_EQ(Region().keep_learnt().code(), EINVAL);
}

// The option's profile comes too late for a file that had no name when it was mapped first.
TEST_F(Learnt, AFileIsLearntInTheProfileThatCameFirst) {
  const os::Descriptor file(::open(folder_.path().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file.get() < 0) GTEST_SKIP() << "this file system has no files without a name";
  const std::string link = "/proc/self/fd/" + std::to_string(file.get());
  const std::string other = folder_ / "other", named = folder_ / "named";
  write_file(link, pattern(kMiB));
  {
    Runtime runtime = start();
    Region first = map(runtime, link);
    EXPECT_EQ(first.learn(other).code(), ENOENT);
    ASSERT_EQ(::linkat(AT_FDCWD, link.c_str(), AT_FDCWD, named.c_str(), AT_SYMLINK_FOLLOW), 0);
    ASSERT_TRUE(first.learn(other).ok());
    const Region second = map(runtime, link);
    touch(second, {5, 250});
  }
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_FALSE(std::filesystem::exists(profile_));
}

TEST_F(Learnt, AFileMappedAgainAndAgainIsBroughtInOnceAndKeepsAllThatWasTouched) {
  const std::string path = make_file("a");
  run(path, {10, 4000});
  {
    Runtime runtime = start();
    for (uint64_t i = 0; i < 10; ++i) {
      const Region region = map(runtime, path);
      wait_for_replays(runtime);
      touch(region, {100 + 16 * i});
    }
    EXPECT_EQ(runtime.metrics().counters.learnt_fills, 2u);
  }
  Runtime runtime = start();
  const Region region = map(runtime, path);
  wait_for_replays(runtime);
  EXPECT_EQ(runtime.metrics().counters.learnt_fills, 12u);
}

TEST_F(Learnt, OfAFileMappedInPartsEachIsBroughtInOnce) {
  const std::string path = make_file("a");
  run(path, {10, 3000, 4000, 8000});
  Runtime runtime = start();
  const auto fills_after = [&](uint64_t first_page, uint64_t pages) {
    const Region region =
        map(runtime, path, {.offset = first_page * kPage, .size_bytes = pages * kPage});
    wait_for_replays(runtime);
    return runtime.metrics().counters.learnt_fills;
  };
  EXPECT_EQ(fills_after(0, 100), 1u);
  EXPECT_EQ(fills_after(3900, 200), 2u);
  EXPECT_EQ(fills_after(50, 4000), 3u);
  EXPECT_EQ(fills_after(0, 4100), 3u);
  EXPECT_EQ(fills_after(0, 8192), 4u);
  EXPECT_EQ(fills_after(0, 8192), 4u);
}

TEST_F(Learnt, AFileThatGrowsBetweenItsMappingsKeepsAllThatWasTouched) {
  const std::string path = make_file("a", kMiB);
  {
    Runtime runtime = start();
    touch(map(runtime, path), {5});
    std::filesystem::resize_file(path, kGiB);
    EXPECT_EQ(map(runtime, path).data()[200'000 * kPage], std::byte{0});
    touch(map(runtime, path), {7});
  }
  const std::vector<prefetch::Touch> expected = {{0, 0b10100000}, {12'500, 1}};
  EXPECT_EQ(prefetch::decode_touches(profile().files().at(0).touches), expected);
}

TEST_F(Learnt, AFileThatIsUnmappedInTheMiddleOfItIsBroughtInByTheNextMapping) {
  const std::string path = make_file("a");
  run(path, all_pages(kFileBytes));
  Runtime runtime = start(64 * kMiB);
  ASSERT_TRUE(map(runtime, path).unmap().ok());
  const uint64_t brought_in = runtime.metrics().counters.learnt_fills;
  if (brought_in == kFileBytes / kPage) GTEST_SKIP() << "all of it was there already";
  const Region region = map(runtime, path);
  wait_for_replays(runtime);
  EXPECT_EQ(runtime.metrics().counters.learnt_fills, brought_in + kFileBytes / kPage);
}

}  // namespace
}  // namespace outcore
