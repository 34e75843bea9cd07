// What a commit of a pool says that it holds: as much as one text for the same bytes, and no other
// bytes under the same text.
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "checkpoints/store/versioned_store.h"
#include "core/tests/conformance/common.h"
#include "outcore/runtime.h"
#include "tests/folder.h"

namespace outcore {
namespace {

std::shared_ptr<Store> open_one(const std::string& uri, bool is_writable) {
  OpenOptions options;
  options.is_writable = options.may_create = is_writable;
  options.size_bytes = is_writable ? 1 << 16 : 0;
  const auto store = open_store(uri, options);
  EXPECT_TRUE(store.ok()) << store.message();
  return store.value();
}

std::string contents_of(const std::string& uri) { return open_one(uri, false)->contents_id(); }

TEST(ContentsOfCommits, AreNamedByTheirBytes) {
  const scene::Folder folder;
  const std::string pool = "versioned:" + (folder / "pool"), uri = pool + "?object=a";
  const auto writer = open_one(uri, true);
  auto& versioned = dynamic_cast<store::VersionedStore&>(*writer);
  EXPECT_EQ(writer->contents_id(), "") << "it may be written";
  std::vector<std::string> seen;
  std::vector<std::byte> bytes(4096);
  for (int i = 0; i < 3; ++i) {
    bytes[0] = std::byte(i);
    ASSERT_EQ(writer->write(0, bytes), 0);
    ASSERT_TRUE(versioned.pool().commit("c" + std::to_string(i)).ok());
    const std::string now = contents_of(uri);
    EXPECT_EQ(now, contents_of(uri));
    EXPECT_EQ(now, contents_of(uri + "&at=c" + std::to_string(i)));
    EXPECT_EQ(std::find(seen.begin(), seen.end(), now), seen.end());
    seen.push_back(now);
  }
  // What does not change the object changes nothing.
  ASSERT_EQ(open_one(pool + "?object=b", true)->sync(), 0);
  EXPECT_EQ(contents_of(uri), seen[2]);
  // The same bytes at another place are others, and so are more of them.
  ASSERT_TRUE(versioned.pool().roll_back("c0").ok());
  EXPECT_EQ(contents_of(uri), seen[0]);
  ASSERT_EQ(writer->write(4096, bytes), 0);
  ASSERT_EQ(writer->sync(), 0);
  const std::string twice = contents_of(uri);
  ASSERT_EQ(writer->discard(0, 4096), 0);
  ASSERT_EQ(writer->sync(), 0);
  const std::string moved = contents_of(uri);
  ASSERT_EQ(writer->resize(1 << 17), 0);
  ASSERT_EQ(writer->sync(), 0);
  const std::string longer = contents_of(uri);
  EXPECT_EQ((std::set<std::string>{seen[0], seen[1], seen[2], twice, moved, longer}.size()), 6u);
}

// A pool that was made anew in the same folder may have the same numbers of commits.
TEST(ContentsOfCommits, OfANewPoolInTheSameFolderAreOthers) {
  const scene::Folder folder;
  const std::string uri = "versioned:" + (folder / "pool") + "?object=a";
  std::set<std::string> seen;
  std::shared_ptr<Store> reader;
  for (int i = 0; i < 2; ++i) {
    std::filesystem::remove_all(folder / "pool");
    const auto writer = open_one(uri, true);
    const std::vector<std::byte> bytes(4096, std::byte(i));
    ASSERT_EQ(writer->write(0, bytes), 0);
    ASSERT_EQ(writer->sync(), 0);
    EXPECT_TRUE(seen.insert(contents_of(uri)).second) << i;
    if (i == 0) reader = open_one(uri, false);
  }
}

TEST(ContentsOfCommits, AForkedChildReadsItsParentsCommitWhateverHasHappenedSince) {
  if (const std::string why = scene::why_no_buffers(); !why.empty()) GTEST_SKIP() << why;
  const scene::Folder folder;
  const scene::Common<std::atomic<uint32_t>> stage;
  ::setenv("OUTCORE_BUFFER_DIR", (folder / "buffers").c_str(), 1);
  const std::string uri = "versioned:" + (folder / "pool") + "?object=a";
  std::vector<std::byte> bytes(1 << 16, std::byte{1});
  {
    const auto writer = open_one(uri, true);
    ASSERT_EQ(writer->write(0, bytes), 0);
    ASSERT_EQ(writer->sync(), 0);
  }
  const auto read = [&] {
    RuntimeOptions options;
    options.ignore_environment = true;
    options.budget_bytes = 8 << 20;
    options.buffer = "pool";
    auto runtime = Runtime::start(options);
    auto region = runtime.value().map(uri);
    if (!region || !region.value().is_shared()) return 1;
    if (region.value().data()[0] != std::byte{1}) return 2;
    stage[0] = 1;
    while (stage[0].load() < 2) ::sched_yield();
    const pid_t child = ::fork();
    if (child == 0)
      ::_exit(std::memcmp(region.value().data(), bytes.data(), bytes.size()) == 0 ? 0 : 3);
    return scene::status_of(child);
  };
  const pid_t reader = ::fork();
  if (reader == 0) ::_exit(read());
  scene::wait_for_child(stage[0], 1, reader);
  {
    const std::vector<std::byte> others(1 << 16, std::byte{2});
    const auto writer = open_one(uri, true);
    ASSERT_EQ(writer->write(0, others), 0);
    ASSERT_EQ(writer->sync(), 0);
  }
  std::filesystem::rename(folder / "pool", folder / "moved");
  stage[0] = 2;
  EXPECT_EQ(scene::status_of(reader), 0);
  ::unsetenv("OUTCORE_BUFFER_DIR");
}

}  // namespace
}  // namespace outcore
