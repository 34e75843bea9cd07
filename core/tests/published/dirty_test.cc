// dirty_bytes: what a process has written and not stored, as the kernel sees it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

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
  const Result<uint64_t> at_first = dirty_bytes(::getpid());
  if (!at_first && at_first.code() == ENOTSUP) GTEST_SKIP() << at_first.message();
  if (!at_first && at_first.code() == ENOENT) GTEST_SKIP() << "without userfaultfd nothing is seen";
  ASSERT_TRUE(at_first.ok()) << at_first.message();
  EXPECT_EQ(at_first.value(), 0u);
  uint64_t sum = 0;
  for (uint64_t page = 0; page < kPages; ++page)
    sum += static_cast<uint64_t>(region.data()[page * 4096]);
  EXPECT_NE(sum, 0u);
  EXPECT_EQ(dirty_bytes(::getpid()).value(), 0u) << "what was only read";
  for (uint64_t page = 0; page < kPages; page += 4) region.data()[page * 4096] = std::byte{7};
  EXPECT_EQ(dirty_bytes(::getpid()).value(), kPages / 4 * 4096);
  ASSERT_TRUE(region.flush().ok());
  EXPECT_EQ(dirty_bytes(::getpid()).value(), 0u);
}

TEST(DirtyBytes, OfAProcessThatIsGoneIsAnError) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(dirty_bytes(child).code(), ESRCH);
}

}  // namespace
}  // namespace outcore
