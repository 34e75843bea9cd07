// Many threads and many regions.
#include <atomic>
#include <thread>

#include "umap/tests/umap/scene.h"

namespace outcore {
namespace {

using namespace scene;

TEST_F(UmapTest, ThreadsMapAndUnmapAtTheSameTime) {
  constexpr int kThreads = 4, kRounds = 20;
  constexpr uint64_t kBytes = 64 * kPageBytes;
  std::vector<int> files;
  files.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) files.push_back(file("data" + std::to_string(i), kBytes));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&, fd = files[static_cast<size_t>(i)]] {
      for (int round = 0; round < kRounds; ++round) {
        void* const at = umap(nullptr, kBytes, kBoth, UMAP_PRIVATE, fd, 0);
        if (at == UMAP_FAILED) {
          ++wrong;
          return;
        }
        auto* const bytes = static_cast<std::byte*>(at);
        umap_prefetch_item item{bytes + 8 * kPageBytes};
        umap_prefetch(1, &item);
        if (first_difference(bytes + kPageBytes, kBytes - kPageBytes, kPageBytes) !=
            kBytes - kPageBytes)
          ++wrong;
        bytes[0] = static_cast<std::byte>(round + 1);
        if (round % 3 == 0 && umap_flush() != 0) ++wrong;
        if (uunmap(at, kBytes) != 0) ++wrong;
        if (byte_of(fd, 0) != round + 1) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(UmapTest, FlushesRunBesideMapsAtOneAddress) {
  constexpr int kRounds = 60;
  constexpr uint64_t kBytes = 16 * kPageBytes;
  const int fd = file("data", kBytes), other = file("other", kBytes);
  void* const kept =
      ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(kept, MAP_FAILED);
  std::byte* const stays = map(other, kBytes);
  std::atomic<bool> is_over{false};
  std::atomic<int> failed{0};
  std::thread flusher([&] {
    while (!is_over)
      if (umap_flush() != 0) ++failed;
  });
  for (int round = 1; round <= kRounds; ++round) {
    stays[0] = static_cast<std::byte>(round);
    void* const at = umap(kept, kBytes, kBoth, UMAP_PRIVATE | UMAP_FIXED, fd, 0);
    EXPECT_EQ(at, kept) << std::strerror(errno);
    if (at != kept) break;
    static_cast<std::byte*>(at)[7] = static_cast<std::byte>(round);
    EXPECT_EQ(uunmap(at, kBytes), 0);
    EXPECT_EQ(byte_of(fd, 7), round);
  }
  is_over = true;
  flusher.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(uunmap(stays, kBytes), 0);
  EXPECT_EQ(byte_of(other, 0), kRounds);
}

TEST_F(UmapTest, ManyRegionsShareTheBuffer) {
  constexpr uint64_t kRegions = 500, kBytes = 32 * kPageBytes;
  const int fd = open_file("data", O_RDWR | O_CREAT);
  ASSERT_EQ(::ftruncate(fd, kRegions * kBytes), 0);
  std::vector<std::byte*> regions;
  for (uint64_t i = 0; i < kRegions; ++i)
    regions.push_back(map(fd, kBytes, kBoth, static_cast<off_t>(i * kBytes)));
  for (uint64_t page = 0; page < 32; ++page)
    for (uint64_t i = 0; i < kRegions; ++i)
      regions[i][page * kPageBytes] = static_cast<std::byte>(i % 250 + 1);
  EXPECT_EQ(umap_flush(), 0);
  for (uint64_t i = 0; i < kRegions; ++i) {
    EXPECT_EQ(byte_of(fd, i * kBytes + 31 * kPageBytes), static_cast<int>(i % 250 + 1));
    EXPECT_EQ(uunmap(regions[i], kBytes), 0);
  }
}

TEST_F(UmapTest, TheRuntimeEndsWithTheLastRegion) {
  const int fd = file("data", 4 * kPageBytes);
  ASSERT_EQ(uunmap(map(fd, 4 * kPageBytes), 0), 0);  // what stays for good is there
  const uint64_t descriptors = count_descriptors();
  std::byte* const one = map(fd, 4 * kPageBytes);
  std::byte* const other = map(fd, 4 * kPageBytes);
  EXPECT_GT(count_descriptors(), descriptors);
  EXPECT_EQ(uunmap(one, 0), 0);
  EXPECT_GT(count_descriptors(), descriptors);
  EXPECT_EQ(other[1], byte_at(1));
  EXPECT_EQ(uunmap(other, 0), 0);
  EXPECT_EQ(count_descriptors(), descriptors);
}

TEST_F(UmapTest, TheRuntimeEndsAfterAMapThatFailed) {
  const int fd = file("data", 4 * kPageBytes);
  ASSERT_EQ(uunmap(map(fd, 4 * kPageBytes), 0), 0);  // what stays for good is there
  const uint64_t descriptors = count_descriptors();
  testing::internal::CaptureStderr();
  EXPECT_EQ(umap_variable(nullptr, kPageBytes, kBoth, UMAP_PRIVATE, fd, 0, 16 * kMiB), UMAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(count_descriptors(), descriptors);
}

}  // namespace
}  // namespace outcore
