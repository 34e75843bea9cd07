// System calls on managed memory: which work, which return EFAULT, and the remedies.
#include <fcntl.h>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class SystemCallsOn : public OnMechanism {
 protected:
  bool faults_inside_calls_work() const { return GetParam().delivery == Delivery::kMessages; }
  int open_source(uint64_t size_bytes) {
    write_file(folder_ / "source", pattern(size_bytes, kMiB));
    return ::open((folder_ / "source").c_str(), O_RDWR);
  }
};
OUTCORE_ON_ALL_MECHANISMS(SystemCallsOn);

TEST_P(SystemCallsOn, AbsentPagesReadInto) {
  const std::string path = file_of(data_bytes());
  const Region region = map(path, Access::kReadWrite).value();
  const int fd = open_source(3 * page_bytes());
  std::byte* at = region.data() + page_bytes() + 10;
  const ssize_t n = ::pread(fd, at, 2 * page_bytes(), 0);
  if (faults_inside_calls_work()) {
    EXPECT_EQ(n, static_cast<ssize_t>(2 * page_bytes()));
    EXPECT_EQ(first_difference(at, 2 * page_bytes(), kMiB), 2 * page_bytes());
  } else {
    EXPECT_EQ(n, -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(first_difference(at, page_bytes(), page_bytes() + 10), page_bytes())
        << "nothing changed";
  }
  ::close(fd);
}

TEST_P(SystemCallsOn, AbsentPagesWrittenFrom) {
  const std::string path = file_of(data_bytes());
  const Region region = map(path, Access::kReadOnly).value();
  const int fd = open_source(8 * page_bytes());
  const ssize_t n = ::pwrite(fd, region.data() + page_bytes(), 3 * page_bytes(), 0);
  if (faults_inside_calls_work()) {
    EXPECT_EQ(n, static_cast<ssize_t>(3 * page_bytes()));
    const Bytes now = read_file(folder_ / "source");
    EXPECT_EQ(first_difference(now.data(), 3 * page_bytes(), page_bytes()), 3 * page_bytes());
  } else {
    EXPECT_EQ(n, -1);
    EXPECT_EQ(errno, EFAULT);
  }
  ::close(fd);
}

TEST_P(SystemCallsOn, PinnedPagesWork) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  const int fd = open_source(3 * page_bytes());
  ASSERT_TRUE(region.pin(page_bytes(), 3 * page_bytes()).ok());
  ASSERT_EQ(::pread(fd, region.data() + page_bytes() + 10, 2 * page_bytes(), 0),
            static_cast<ssize_t>(2 * page_bytes()));
  ASSERT_EQ(::pwrite(fd, region.data() + page_bytes() + 10, 2 * page_bytes(), 0),
            static_cast<ssize_t>(2 * page_bytes()));
  ASSERT_TRUE(region.unpin(page_bytes(), 3 * page_bytes()).ok());
  ::close(fd);
  ASSERT_TRUE(region.unmap().ok());
  const Bytes now = read_file(path);
  EXPECT_EQ(first_difference(now.data() + page_bytes() + 10, 2 * page_bytes(), kMiB),
            2 * page_bytes());
}

TEST_P(SystemCallsOn, PrefaultedPagesCanBeWrittenFrom) {
  const std::string path = file_of(4 * page_bytes());
  Region region = map(path, Access::kReadOnly).value();
  const int fd = open_source(4 * page_bytes());
  ASSERT_TRUE(region.prefault(0, 4 * page_bytes()).ok());
  EXPECT_EQ(::pwrite(fd, region.data(), 4 * page_bytes(), 0),
            static_cast<ssize_t>(4 * page_bytes()));
  ::close(fd);
  EXPECT_TRUE(read_file(folder_ / "source") == pattern(4 * page_bytes()));
}

TEST_P(SystemCallsOn, TheHelpersServeInsteadOfAFault) {
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadWrite).value();
  const int fd = open_source(3 * page_bytes());
  Bytes buffer(2 * page_bytes());
  ASSERT_EQ(::pread(fd, buffer.data(), buffer.size(), 0), static_cast<ssize_t>(buffer.size()));
  ASSERT_TRUE(region.write(page_bytes() + 10, buffer).ok());
  ASSERT_TRUE(region.read(page_bytes() + 10, buffer).ok());
  ::close(fd);
  EXPECT_EQ(first_difference(buffer.data(), buffer.size(), kMiB), buffer.size());
}

TEST_P(SystemCallsOn, ACallThatFaultsOnAFailedPageSaysEFault) {
  // The file is cut short meanwhile: the fill fails, even in a system call, and the call returns.
  const std::string path = file_of(data_bytes());
  Region region = map(path, Access::kReadOnly).value();
  std::filesystem::resize_file(path, 4096);
  const int fd = open_source(page_bytes());
  const std::byte* failed = region.data() + 4 * page_bytes();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(::pwrite(fd, failed, 4096, 0), -1);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(read_of(failed).signal, SIGBUS);
  }
  std::filesystem::resize_file(path, data_bytes());
  EXPECT_TRUE(region.retry_failed().ok());
  EXPECT_EQ(read_of(failed).signal, 0);
  EXPECT_EQ(::pwrite(fd, failed, 4096, 0), 4096);
  ::close(fd);
}

}  // namespace
}  // namespace outcore
