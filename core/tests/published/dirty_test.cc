// dirty_bytes: what a process has written and not stored, as the kernel sees it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <string>

#include "core/tests/conformance/scene.h"
#include "outcore/sight.h"

namespace outcore {
namespace {

using namespace scene;

constexpr uint64_t kPages = 64;

TEST(DirtyBytes, AreThoseOfPagesThatWereWrittenUntilTheyAreStored) {
  const Folder folder;
  write_file(folder / "data", pattern(kPages * 4096));
  Runtime runtime = Runtime::start(options_with(kMiB)).value();
  Region region = runtime.map(folder / "data", {.access = Access::kReadWrite}).value();
  const Result<DirtyBytes> at_first = dirty_bytes(::getpid());
  if (!at_first && at_first.code() == ENOTSUP) GTEST_SKIP() << at_first.message();
  if (!at_first && at_first.code() == ENOENT) GTEST_SKIP() << "without userfaultfd nothing is seen";
  ASSERT_TRUE(at_first.ok()) << at_first.message();
  EXPECT_EQ(at_first->all, 0u);
  uint64_t sum = 0;
  for (uint64_t page = 0; page < kPages; ++page)
    sum += static_cast<uint64_t>(region.data()[page * 4096]);
  EXPECT_NE(sum, 0u);
  EXPECT_EQ(dirty_bytes(::getpid())->all, 0u) << "what was only read";
  for (uint64_t page = 0; page < kPages; page += 4) region.data()[page * 4096] = std::byte{7};
  EXPECT_EQ(dirty_bytes(::getpid())->all, kPages / 4 * 4096);
  ASSERT_TRUE(region.flush().ok());
  EXPECT_EQ(dirty_bytes(::getpid())->all, 0u);
}

// Two files of one runtime: what is written of one is not told of the other.
TEST(DirtyBytes, AreToldOfEachStore) {
  const Folder folder;
  write_file(folder / "one", pattern(kPages * 4096));
  write_file(folder / "two", pattern(kPages * 4096));
  Runtime runtime = Runtime::start(options_with(4 * kMiB)).value();
  const MapOptions to_write{.access = Access::kReadWrite};
  Region one = runtime.map(folder / "one", to_write).value();
  Region two = runtime.map(folder / "two", to_write).value();
  if (const auto at_first = dirty_bytes(::getpid()); !at_first && at_first.code() != ESRCH)
    GTEST_SKIP() << at_first.message();
  for (uint64_t page = 0; page < 5; ++page) one.data()[page * 4096] = std::byte{7};
  for (uint64_t page = 10; page < 13; ++page) two.data()[page * 4096] = std::byte{7};
  const auto each_now = [&] {
    const std::vector<PublishedRuntime> seen = look_at(::getpid()).value();
    const DirtyBytes dirty = dirty_bytes(::getpid(), places_of(seen)).value();
    std::map<std::string, uint64_t> each;
    size_t at = 0;
    for (const PublishedRuntime& other : seen)
      for (const RegionMetrics& region : other.metrics.regions)
        each[region.uri.substr(region.uri.rfind('/') + 1)] = dirty.each.at(at++).value();
    return each;
  };
  EXPECT_EQ(each_now(), (std::map<std::string, uint64_t>{{"one", 5 * 4096}, {"two", 3 * 4096}}));
  ASSERT_TRUE(one.flush().ok());
  EXPECT_EQ(each_now(), (std::map<std::string, uint64_t>{{"one", 0}, {"two", 3 * 4096}}));
  ASSERT_TRUE(two.unmap().ok());
  EXPECT_EQ(each_now(), (std::map<std::string, uint64_t>{{"one", 0}}));
}

TEST(DirtyBytes, OfAProcessThatIsGoneIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(dirty_bytes(child).code(), ESRCH);
}

}  // namespace
}  // namespace outcore
