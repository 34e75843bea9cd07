// What state a file is in, and whether a further change would be noticed.
#include "core/store/file_version.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/folder.h"

namespace outcore::store {
namespace {

class FileVersions : public testing::Test {
 protected:
  void TearDown() override { ::close(fd); }
  FileVersion version() const {
    FileVersion found;
    EXPECT_EQ(FileVersion::of(fd, &found), 0);
    return found;
  }
  const scene::Folder folder{scene::disk_parent()};
  const int fd = ::open((folder / "file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
};

TEST_F(FileVersions, AreFreshUntilAFurtherChangeWouldBeNoticed) {
  ASSERT_EQ(::pwrite(fd, "a", 1, 0), 1);
  while (version().is_fresh()) ::sched_yield();
  const FileVersion settled = version();
  ASSERT_EQ(::pwrite(fd, "b", 1, 0), 1);
  EXPECT_NE(settled, version());
}

TEST_F(FileVersions, OfWholeSecondsAreFreshForTwo) {
  timespec now{};
  ASSERT_EQ(::clock_gettime(CLOCK_REALTIME, &now), 0);
  FileVersion found = version();
  found.changed_ns = now.tv_sec * int64_t{1'000'000'000};
  EXPECT_TRUE(found.is_fresh());
  found.changed_ns -= int64_t{5'000'000'000};
  EXPECT_FALSE(found.is_fresh());
}

TEST_F(FileVersions, OfNoFileAreNeverFresh) {
  EXPECT_FALSE(FileVersion::of_contents("what it holds", 10).is_fresh());
}

}  // namespace
}  // namespace outcore::store
