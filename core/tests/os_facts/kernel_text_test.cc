#include "core/os/kernel_text.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/tests/os_facts/fake_root.h"

namespace outcore::os {
namespace {

TEST(KernelText, IsReadAsItIsNow) {
  FakeRoot root;
  root.file("/text", "one\n");
  const KernelText text(root.path() + "/text");
  ASSERT_TRUE(text.is_open());
  char buffer[KernelText::kBytesMax];
  EXPECT_EQ(text.read(buffer), "one\n");
  root.file("/text", "and another\n");
  EXPECT_EQ(text.read(buffer), "and another\n");
  char small[3];
  EXPECT_EQ(text.read(small), "and");
}

TEST(KernelText, WhatIsNotThereReadsEmptyAndSaysWhy) {
  const FakeRoot root;
  const KernelText absent(root.path() + "/absent"), folder(root.path()), none;
  char buffer[16];
  EXPECT_EQ(absent.error(), ENOENT);
  EXPECT_TRUE(absent.read(buffer).empty());
  EXPECT_TRUE(folder.read(buffer).empty());
  EXPECT_EQ(none.error(), 0);
  EXPECT_TRUE(none.read(buffer).empty());
}

TEST(KernelText, MovesWithWhatItHasOpen) {
  FakeRoot root;
  root.file("/text", "7\n");
  KernelText first(root.path() + "/text");
  const KernelText second(std::move(first));
  char buffer[16];
  EXPECT_EQ(number_at_start(second.read(buffer)), 7u);
}

// The number under which this process has the file open; -1: it has not.
int number_of(const std::string& path) {
  struct stat wanted = {}, seen = {};
  EXPECT_EQ(::stat(path.c_str(), &wanted), 0);
  for (int fd = 0; fd < 1024; ++fd)
    if (::fstat(fd, &seen) == 0 && seen.st_dev == wanted.st_dev && seen.st_ino == wanted.st_ino)
      return fd;
  return -1;
}

TEST(KernelText, WhatTheProgramHasPutInItsPlaceIsNeitherReadNorClosed) {
  FakeRoot root;
  root.file("/text", "7\n").file("/others", "8\n");
  char buffer[16];
  int fd = -1;
  {
    const KernelText text(root.path() + "/text");
    fd = number_of(root.path() + "/text");
    ASSERT_GE(fd, 0);
    const int others = ::open((root.path() + "/others").c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(others, 0);
    ASSERT_EQ(::dup2(others, fd), fd);
    ASSERT_EQ(::close(others), 0);
    EXPECT_TRUE(text.read(buffer).empty());
    EXPECT_TRUE(text.is_open()) << "it was, and says nothing now";
  }
  EXPECT_EQ(number_of(root.path() + "/others"), fd) << "it is the program's";
  EXPECT_EQ(::close(fd), 0);
}

TEST(KernelText, NumbersStandBehindWholeWords) {
  constexpr const char* kText =
      "MemTotal:       99 kB\nfile 1\nfile_dirty 2\ninactive_file 3\nbad x\nlast 4";
  EXPECT_EQ(number_behind(kText, "MemTotal:"), 99u);
  EXPECT_EQ(number_behind(kText, "file"), 1u);
  EXPECT_EQ(number_behind(kText, "file_dirty"), 2u);
  EXPECT_EQ(number_behind(kText, "last"), 4u);
  EXPECT_FALSE(number_behind(kText, "bad"));
  EXPECT_FALSE(number_behind(kText, "dirty"));
  EXPECT_FALSE(number_behind("", "file"));
  EXPECT_FALSE(number_at_start("max\n"));
  EXPECT_FALSE(number_at_start(""));
  EXPECT_FALSE(number_at_start("99999999999999999999999"));
}

}  // namespace
}  // namespace outcore::os
