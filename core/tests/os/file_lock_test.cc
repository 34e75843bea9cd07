// Locks of files belong to the descriptor; a forked child has none of its parent's.
#include "core/os/file_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tests/folder.h"

namespace outcore::os {
namespace {

class FileLocks : public testing::Test {
 protected:
  const scene::Folder folder;
  const std::string path = folder / "file";
  int first = open_to_lock(AT_FDCWD, path.c_str(), O_RDWR | O_CREAT, 0600);
  int second = open_to_lock(AT_FDCWD, path.c_str(), O_RDWR);
  void TearDown() override {
    for (const int fd : {first, second})
      if (fd >= 0) close_locked(fd);
  }
};

TEST_F(FileLocks, OfBytesExcludeOtherDescriptors) {
  ASSERT_GT(first, STDERR_FILENO);
  ASSERT_GT(second, STDERR_FILENO);
  EXPECT_EQ(lock_bytes(first, F_WRLCK, 10, 2), 0);
  EXPECT_EQ(lock_bytes(second, F_WRLCK, 11, 1), -EAGAIN);
  EXPECT_EQ(lock_bytes(second, F_RDLCK, 12, 0), 0);
  struct flock found {};
  EXPECT_EQ(find_lock(first, 0, 0, &found), 0);
  EXPECT_EQ(found.l_type, F_RDLCK);
  EXPECT_EQ(found.l_start, 12);
  EXPECT_EQ(lock_bytes(first, F_UNLCK, 10, 2), 0);
  EXPECT_EQ(find_lock(second, 0, 0, &found), 0);
  EXPECT_EQ(found.l_type, F_UNLCK);
  EXPECT_EQ(lock_bytes(second, F_WRLCK, 11, 1), 0);
}

TEST_F(FileLocks, OfWholeFilesAreSharedOrExclusive) {
  EXPECT_EQ(lock_file(first, false), 0);
  EXPECT_EQ(lock_file(second, false), 0);
  EXPECT_EQ(lock_file(second, true), -EAGAIN);
  close_locked(std::exchange(first, -1));
  EXPECT_EQ(lock_file(second, true), 0);
}

TEST_F(FileLocks, AreClosedInAForkedChild) {
  ASSERT_EQ(lock_bytes(first, F_WRLCK, 0, 0), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool is_closed = ::fcntl(first, F_GETFD) == -1 && ::fcntl(second, F_GETFD) == -1;
    ::_exit(is_closed ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lock_bytes(second, F_RDLCK, 0, 0), -EAGAIN) << "the parent's is where it was";
}

TEST_F(FileLocks, OfAFileThatIsNotThereAreAnError) {
  EXPECT_EQ(open_to_lock(AT_FDCWD, (folder / "none").c_str(), O_RDWR), -ENOENT);
}

}  // namespace
}  // namespace outcore::os
