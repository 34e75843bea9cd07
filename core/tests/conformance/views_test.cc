// Views: several regions of one store show the same bytes, counted once.
#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <thread>

#include "core/tests/conformance/mechanism.h"

namespace outcore {
namespace {

using namespace scene;

class ViewsOf : public OnMechanism {
 protected:
  Region view(const std::string& path, Access access, uint64_t offset, uint64_t size_bytes) {
    MapOptions options = map_options(access);
    options.frames.reset();
    options.offset = offset;
    options.size_bytes = size_bytes;
    Result<Region> region = runtime_->map(path, options);
    EXPECT_TRUE(region.ok()) << region.message();
    return region.ok() ? std::move(region).value() : Region();
  }
  uint64_t used() const { return runtime_->metrics().gauges.used_bytes; }
  // Why private frames cannot be replaced by shared ones on this kernel; empty: they can.
  std::string lacks_conversion(const std::string& path) {
    if (GetParam().frames != FrameKind::kPrivate) return "";
    const Result<Region> a = map(path, Access::kReadOnly);
    const Result<Region> b = map(path, Access::kReadOnly);
    return !b.ok() && b.code() == ENOTSUP ? b.message() : "";
  }
};
OUTCORE_ON_ALL_MECHANISMS(ViewsOf);

TEST_P(ViewsOf, OverlappingShowTheSameBytes) {
  const uint64_t size = 8 * page_bytes();
  const std::string path = file_of(size);
  if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
  const Region whole = view(path, Access::kReadWrite, 0, 0);
  const Region part = view(path, Access::kReadWrite, 2 * page_bytes() + 4096, 3 * page_bytes());
  const Region reader = view(path, Access::kReadOnly, 4096, 0);
  const uint64_t at = 3 * page_bytes() + 4096;
  whole.data()[at] = std::byte{1};
  EXPECT_EQ(part.data()[at - 2 * page_bytes() - 4096], std::byte{1});
  EXPECT_EQ(reader.data()[at - 4096], std::byte{1});
  part.data()[at - 2 * page_bytes() - 4096] = std::byte{2};
  EXPECT_EQ(whole.data()[at], std::byte{2});
  EXPECT_EQ(reader.data()[at - 4096], std::byte{2});
  EXPECT_EQ(write_of(reader.data() + at - 4096, std::byte{3}).signal, SIGSEGV);
}

TEST_P(ViewsOf, WritesOfEveryViewSurviveEvictionAndReachTheFile) {
  const uint64_t size = data_bytes();
  const std::string path = file_of(size);
  if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
  Region a = view(path, Access::kReadWrite, 0, 0);
  Region b = view(path, Access::kReadWrite, 4096, 0);
  Bytes expected = pattern(size);
  for (uint64_t at = 8192; at < size; at += 4096) {
    const bool is_a = at / 4096 % 2 == 0;
    (is_a ? a.data()[at] : b.data()[at - 4096]) = std::byte{0x61};
    expected[at] = std::byte{0x61};
    ASSERT_EQ(is_a ? b.data()[at - 4096] : a.data()[at], std::byte{0x61}) << at;
  }
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), a.data()));
  ASSERT_TRUE(b.unmap().ok());
  ASSERT_TRUE(a.unmap().ok());
  EXPECT_TRUE(read_file(path) == expected);
}

TEST_P(ViewsOf, FlushOfOneViewStoresWhatAnotherWrote) {
  const std::string path = file_of(4 * page_bytes());
  if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
  Region a = view(path, Access::kReadWrite, 0, 0);
  Region b = view(path, Access::kReadWrite, 0, 0);
  b.data()[page_bytes()] = std::byte{0x10};
  ASSERT_TRUE(a.flush().ok());
  EXPECT_EQ(read_file(path)[page_bytes()], std::byte{0x10});
}

TEST_P(ViewsOf, AreCountedOnce) {
  const std::string path = file_of(8 * page_bytes());
  if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
  MapOptions options = map_options(Access::kReadOnly);
  options.frames.reset();
  options.advice = Advice::kRandom;
  const Region a = runtime_->map(path, options).value();
  const Region b = runtime_->map(path, options).value();
  const uint64_t before = used();
  for (uint64_t page = 0; page < 4; ++page) {
    EXPECT_EQ(a.data()[page * page_bytes()], byte_at(page * page_bytes()));
    EXPECT_EQ(b.data()[page * page_bytes()], byte_at(page * page_bytes()));
  }
  EXPECT_EQ(used(), before + 4 * page_bytes());
  EXPECT_EQ(a.metrics().resident_bytes, 4 * page_bytes());
}

TEST_P(ViewsOf, AWritableViewMayComeAfterAReadOnlyOne) {
  const std::string path = file_of(8 * page_bytes());
  if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
  Region reader = map(path, Access::kReadOnly).value();  // with the frames of the test case
  ASSERT_EQ(first_difference(reader.data(), 8 * page_bytes()), 8 * page_bytes());
  Result<Region> writer = runtime_->map(path, {.access = Access::kReadWrite});
  ASSERT_TRUE(writer.ok()) << writer.message();
  EXPECT_EQ(reader.frames(), FrameKind::kShared);
  writer->data()[page_bytes() + 9] = std::byte{0x55};
  EXPECT_EQ(reader.data()[page_bytes() + 9], std::byte{0x55});
  EXPECT_EQ(reader.data()[page_bytes() + 10], byte_at(page_bytes() + 10));
  ASSERT_TRUE(reader.unmap().ok());
  EXPECT_EQ(writer->data()[page_bytes() + 9], std::byte{0x55});
  ASSERT_TRUE(writer->unmap().ok());
  EXPECT_EQ(read_file(path)[page_bytes() + 9], std::byte{0x55});
}

TEST_P(ViewsOf, UnmappingOneLeavesTheOtherItsDirtyPages) {
  const std::string path = file_of(8 * page_bytes());
  if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
  Region a = view(path, Access::kReadWrite, 0, 0);
  Region b = view(path, Access::kReadWrite, 0, 4 * page_bytes());
  b.data()[1] = std::byte{0xB1};
  a.data()[2] = std::byte{0xA2};
  ASSERT_TRUE(b.unmap().ok());
  a.data()[page_bytes()] = std::byte{0xA3};
  EXPECT_EQ(a.data()[1], std::byte{0xB1});
  ASSERT_TRUE(a.unmap().ok());
  const Bytes now = read_file(path);
  EXPECT_EQ(now[1], std::byte{0xB1});
  EXPECT_EQ(now[2], std::byte{0xA2});
  EXPECT_EQ(now[page_bytes()], std::byte{0xA3});
}

TEST_P(ViewsOf, AnotherPageSizeIsRefused) {
  const std::string path = file_of(8 * page_bytes());
  const Region first = view(path, Access::kReadWrite, 0, 0);
  MapOptions options = map_options(Access::kReadOnly);
  options.page_bytes = page_bytes() * 2;
  const Result<Region> second = runtime_->map(path, options);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), EBUSY) << second.message();
}

TEST_P(ViewsOf, TheSameFileByAnotherNameIsTheSameBytes) {
  const std::string path = file_of(2 * page_bytes());
  if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
  std::filesystem::create_hard_link(path, folder_ / "alias");
  const Region a = view(path, Access::kReadWrite, 0, 0);
  const Region b = view(folder_ / "alias", Access::kReadOnly, 0, 0);
  a.data()[0] = std::byte{0x77};
  EXPECT_EQ(b.data()[0], std::byte{0x77});
}

// Another process enlarges the file, within the page where it ended.
TEST_P(ViewsOf, AFileThatGrewIsSeenToItsEndByTheNextMap) {
  const uint64_t before = 2 * page_bytes() + 5000, after = before + 3000;
  for (const Access access : {Access::kReadOnly, Access::kReadWrite}) {
    const std::string path = file_of(before, access == Access::kReadOnly ? "read" : "written");
    if (const std::string why = lacks_conversion(path); !why.empty()) GTEST_SKIP() << why;
    Region first = view(path, access, 0, 0);
    ASSERT_EQ(first_difference(first.data(), before), before);
    if (access == Access::kReadWrite)  // past the end: dropped
      first.data()[before + 10] = std::byte{0x77};
    write_file(path, pattern(after));
    Region second = view(path, access, 0, 0);
    ASSERT_EQ(second.size_bytes(), after);
    EXPECT_EQ(first_difference(second.data(), after), after);
    EXPECT_EQ(first_difference(first.data(), before), before);
    if (access == Access::kReadOnly) continue;
    second.data()[after - 1] = std::byte{0x78};
    ASSERT_TRUE(second.flush().ok());
    Bytes expected = pattern(after);
    expected[after - 1] = std::byte{0x78};
    EXPECT_TRUE(read_file(path) == expected);
  }
}

// With message delivery, system calls may touch a store while it is mapped a second time, and
// SIGSEGV may be blocked.
TEST_P(ViewsOf, ASecondMapDisturbsNoSystemCallByMessages) {
  if (GetParam().delivery != Delivery::kMessages) GTEST_SKIP() << "promised by messages only";
  const uint64_t size = 8 * page_bytes();
  for (int round = 0; round < 10; ++round) {
    const std::string path = file_of(size, "data" + std::to_string(round));
    MapOptions options = map_options(Access::kReadOnly);
    const Region first = runtime_->map(path, options).value();
    std::atomic<bool> is_mapped_again = false;
    std::atomic<uint64_t> calls = 0, failures = 0, wrong = 0;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t)
      threads.emplace_back([&, t] {
        sigset_t all;
        sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
        const int fd = ::open((folder_ / ("copy" + std::to_string(t))).c_str(),
                              O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        for (uint64_t at = t * 4096; calls < 300 || !is_mapped_again; at = (at + 4096) % size) {
          failures += ::pwrite(fd, first.data() + at, 4096, 0) != 4096;
          wrong += first.data()[at + 7] != byte_at(at + 7);
          ++calls;
        }
        ::close(fd);
      });
    while (calls < 100) std::this_thread::yield();
    options.frames.reset();
    const Result<Region> second = runtime_->map(path, options);
    is_mapped_again = true;
    for (std::thread& thread : threads) thread.join();
    if (!second.ok() && second.code() == ENOTSUP) GTEST_SKIP() << second.message();
    ASSERT_TRUE(second.ok()) << second.message();
    EXPECT_EQ(failures, 0u);
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(first_difference(second->data(), size), size);
  }
}

}  // namespace
}  // namespace outcore
