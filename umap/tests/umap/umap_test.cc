// umap() and its kin over files.
#include <algorithm>

#include "umap/tests/umap/scene.h"

namespace outcore {
namespace {

using namespace scene;

TEST_F(UmapTest, ShowsTheFile) {
  const int fd = file("data", 64 * kPageBytes);
  std::byte* const at = map(fd, 64 * kPageBytes, PROT_READ);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % kPageBytes, 0U);
  EXPECT_EQ(first_difference(at, 64 * kPageBytes), 64 * kPageBytes);
  EXPECT_EQ(uunmap(at, 64 * kPageBytes), 0);
}

TEST_F(UmapTest, ShowsTheFileFromAnOffsetOn) {
  const int fd = file("data", 64 * kPageBytes);
  std::byte* const at = map(fd, 8 * kPageBytes, PROT_READ, 16 * kPageBytes);
  EXPECT_EQ(first_difference(at, 8 * kPageBytes, 16 * kPageBytes), 8 * kPageBytes);
  EXPECT_EQ(uunmap(at, 8 * kPageBytes), 0);
}

TEST_F(UmapTest, AFlushStoresWhatWasWritten) {
  const int fd = file("data", 64 * kPageBytes);
  std::byte* const at = map(fd, 64 * kPageBytes);
  for (uint64_t page = 0; page < 64; ++page) at[page * kPageBytes + 7] = std::byte{0xAB};
  EXPECT_EQ(umap_flush(), 0);
  for (uint64_t page = 0; page < 64; ++page) EXPECT_EQ(byte_of(fd, page * kPageBytes + 7), 0xAB);
  EXPECT_EQ(uunmap(at, 64 * kPageBytes), 0);
}

TEST_F(UmapTest, AnUnmapStoresWhatWasWritten) {
  const int fd = file("data", 64 * kPageBytes);
  std::byte* const at = map(fd, 64 * kPageBytes);
  at[5 * kPageBytes] = std::byte{1}, at[63 * kPageBytes] = std::byte{2};
  EXPECT_EQ(uunmap(at, 64 * kPageBytes), 0);
  EXPECT_EQ(byte_of(fd, 5 * kPageBytes), 1);
  EXPECT_EQ(byte_of(fd, 63 * kPageBytes), 2);
}

TEST_F(UmapTest, TheProgramMayCloseItsDescriptor) {
  write_file(folder / "data", pattern(16 * kPageBytes));
  const int fd = ::open((folder / "data").c_str(), O_RDWR);
  std::byte* const at = map(fd, 16 * kPageBytes);
  ::close(fd);
  at[kPageBytes] = std::byte{9};
  EXPECT_EQ(at[3 * kPageBytes], byte_at(3 * kPageBytes));
  EXPECT_EQ(uunmap(at, 16 * kPageBytes), 0);
  EXPECT_EQ(read_file(folder / "data")[kPageBytes], std::byte{9});
}

TEST_F(UmapTest, AFileWithoutANameWorks) {
  const int fd = file("data", 16 * kPageBytes);
  std::filesystem::remove(folder / "data");
  std::byte* const at = map(fd, 16 * kPageBytes);
  at[0] = std::byte{3};
  EXPECT_EQ(at[kPageBytes], byte_at(kPageBytes));
  EXPECT_EQ(uunmap(at, 16 * kPageBytes), 0);
  EXPECT_EQ(byte_of(fd, 0), 3);
}

TEST_F(UmapTest, ADescriptorWithDirectIoWorks) {
  file("data", 16 * kPageBytes + 100);
  const int fd = ::open((folder / "data").c_str(), O_RDWR | O_DIRECT);
  if (fd < 0) GTEST_SKIP() << "this filesystem refuses O_DIRECT";
  std::byte* const at = map(fd, 17 * kPageBytes);
  ::close(fd);
  EXPECT_EQ(first_difference(at, 16 * kPageBytes + 100), 16 * kPageBytes + 100);
  EXPECT_EQ(uunmap(at, 17 * kPageBytes), 0);
}

TEST_F(UmapTest, PastTheEndOfTheFileBytesReadZero) {
  const int fd = file("data", 3 * kPageBytes + 100, O_RDONLY);
  std::byte* const at = map(fd, 16 * kPageBytes, PROT_READ);
  EXPECT_EQ(first_difference(at, 3 * kPageBytes + 100), 3 * kPageBytes + 100);
  for (uint64_t i = 3 * kPageBytes + 100; i < 16 * kPageBytes; ++i)
    ASSERT_EQ(at[i], std::byte{0}) << i;
  EXPECT_EQ(uunmap(at, 16 * kPageBytes), 0);
}

TEST_F(UmapTest, WritingBeforeTheEndLeavesTheSizeAsItIs) {
  const int fd = file("data", 3 * kPageBytes + 100);
  std::byte* const at = map(fd, 4 * kPageBytes);
  at[3 * kPageBytes] = std::byte{1};
  at[3 * kPageBytes + 99] = std::byte{0};
  EXPECT_EQ(uunmap(at, 4 * kPageBytes), 0);
  EXPECT_EQ(size_of("data"), 3 * kPageBytes + 100);
  EXPECT_EQ(byte_of(fd, 3 * kPageBytes), 1);
  EXPECT_EQ(byte_of(fd, 3 * kPageBytes + 99), 0);
}

TEST_F(UmapTest, WhatIsWrittenPastTheEndMakesTheFileLonger) {
  const int fd = open_file("new", O_RDWR | O_CREAT);
  std::byte* const at = map(fd, 64 * kPageBytes);
  at[10 * kPageBytes + 5] = std::byte{7};
  EXPECT_EQ(umap_flush(), 0);
  EXPECT_EQ(size_of("new"), 10 * kPageBytes + 6);
  for (uint64_t i = 0; i < 64 * kPageBytes; ++i) at[i] = byte_at(i);
  EXPECT_EQ(uunmap(at, 64 * kPageBytes), 0);
  EXPECT_EQ(read_file(folder / "new"), pattern(64 * kPageBytes));
}

TEST_F(UmapTest, AFileThatOthersMadeLongerIsNotCutShort) {
  const int fd = file("data", kPageBytes);
  std::byte* const at = map(fd, 8 * kPageBytes);
  at[4 * kPageBytes] = std::byte{1};
  const char end = 'e';
  ASSERT_EQ(::pwrite(fd, &end, 1, 100 * kPageBytes), 1);
  EXPECT_EQ(uunmap(at, 8 * kPageBytes), 0);
  EXPECT_EQ(size_of("data"), 100 * kPageBytes + 1);
  EXPECT_EQ(byte_of(fd, 4 * kPageBytes), 1);
}

// What it has not read yet it finds there, and does not write zeros over.
TEST_F(UmapTest, ARegionPastTheEndReadsWhatOthersHaveStoredSince) {
  const int fd = file("data", 0);
  std::byte* const at = map(fd, 8 * kPageBytes);
  const char stored = 's';
  ASSERT_EQ(::pwrite(fd, &stored, 1, 4 * kPageBytes + 7), 1);
  EXPECT_EQ(at[4 * kPageBytes + 7], std::byte{'s'});
  at[4 * kPageBytes] = std::byte{1};
  EXPECT_EQ(uunmap(at, 8 * kPageBytes), 0);
  EXPECT_EQ(byte_of(fd, 4 * kPageBytes), 1);
  EXPECT_EQ(byte_of(fd, 4 * kPageBytes + 7), 's');
}

TEST_F(UmapTest, TwoRegionsOfOneFileShowTheSameBytes) {
  const int fd = file("data", 64 * kPageBytes);
  std::byte* const one = map(fd, 64 * kPageBytes);
  std::byte* const other = map(fd, 32 * kPageBytes);
  one[kPageBytes] = std::byte{0x5A};
  EXPECT_EQ(other[kPageBytes], std::byte{0x5A});
  EXPECT_EQ(uunmap(one, 64 * kPageBytes), 0);
  other[0] = std::byte{0x33};
  EXPECT_EQ(uunmap(other, 32 * kPageBytes), 0);
  EXPECT_EQ(byte_of(fd, 0), 0x33);
  EXPECT_EQ(byte_of(fd, kPageBytes), 0x5A);
}

TEST_F(UmapTest, TheBufferHoldsNoMoreThanItsPages) {
  const uint64_t bytes = 64 * kMiB;
  const int fd = open_file("large", O_RDWR | O_CREAT);
  ASSERT_EQ(::ftruncate(fd, bytes), 0);
  std::byte* const at = map(fd, bytes);
  EXPECT_EQ(umapcfg_get_max_pages_in_buffer(), kBufferPages);
  std::vector<unsigned char> is_resident(bytes / kPageBytes);
  for (uint64_t page = 0; page < bytes / kPageBytes; ++page) {
    at[page * kPageBytes] = static_cast<std::byte>(page % 251 + 1);
    if (page % 1024 != 1023) continue;
    ASSERT_EQ(::mincore(at, bytes, is_resident.data()), 0);
    const auto resident = std::count_if(is_resident.begin(), is_resident.end(),
                                        [](unsigned char c) { return c & 1; });
    EXPECT_LE(static_cast<uint64_t>(resident), kBufferPages);
  }
  for (uint64_t page = 0; page < bytes / kPageBytes; ++page)
    ASSERT_EQ(at[page * kPageBytes], static_cast<std::byte>(page % 251 + 1)) << page;
  EXPECT_EQ(uunmap(at, bytes), 0);
  EXPECT_EQ(byte_of(fd, bytes - kPageBytes), (bytes / kPageBytes - 1) % 251 + 1);
}

TEST_F(UmapTest, ARegionHasThePageSizeThatItAsksFor) {
  const int fd = file("data", 4 * kMiB);
  void* const at =
      umap_variable(nullptr, 4 * kMiB, PROT_READ | PROT_WRITE, UMAP_PRIVATE, fd, 0, 64 * kKiB);
  ASSERT_NE(at, UMAP_FAILED);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % (64 * kKiB), 0U);
  EXPECT_EQ(first_difference(static_cast<std::byte*>(at), 4 * kMiB), 4 * kMiB);
  EXPECT_EQ(uunmap(at, 4 * kMiB), 0);
  umapcfg_set_umap_page_size(16 * kKiB);
  EXPECT_EQ(umapcfg_get_umap_page_size(), 16 * kKiB);
  std::byte* const other = map(fd, 4 * kMiB, PROT_READ);
  EXPECT_EQ(first_difference(other, 4 * kMiB), 4 * kMiB);
  EXPECT_EQ(uunmap(other, 4 * kMiB), 0);
}

TEST_F(UmapTest, AFixedAddressIsTaken) {
  const int fd = file("data", 16 * kPageBytes);
  // As programs keep addresses for it.
  void* const kept = ::mmap(nullptr, 32 * kPageBytes, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(kept, MAP_FAILED);
  auto* const wanted = static_cast<std::byte*>(kept) + 8 * kPageBytes;
  constexpr int kFlags = UMAP_PRIVATE | UMAP_FIXED;
  void* const at = umap(wanted, 16 * kPageBytes, PROT_READ | PROT_WRITE, kFlags, fd, 0);
  ASSERT_EQ(at, wanted) << std::strerror(errno);
  EXPECT_EQ(first_difference(wanted, 16 * kPageBytes), 16 * kPageBytes);
  EXPECT_EQ(umap(wanted, 16 * kPageBytes, PROT_READ, kFlags, fd, 0), UMAP_FAILED);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(uunmap(at, 16 * kPageBytes), 0);
  ::munmap(kept, 32 * kPageBytes);
}

// Pages of this size do not fit into the buffer, which is known only when all else is done.
TEST_F(UmapTest, AFixedMapThatFailsLeavesTheMemoryThatWasThere) {
  const uint64_t bytes = 16 * kMiB;
  const int fd = file("data", 16 * kPageBytes);
  void* const kept = ::mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(kept, MAP_FAILED);
  auto* const at =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(kept) + bytes - 1) / bytes * bytes);
  at[0] = std::byte{'k'}, at[kPageBytes] = std::byte{'e'};
  constexpr int kFlags = UMAP_PRIVATE | UMAP_FIXED;
  testing::internal::CaptureStderr();
  EXPECT_EQ(umap_variable(at, 2 * kPageBytes, kBoth, kFlags, fd, 0, bytes), UMAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
  unsigned char resident[2];
  ASSERT_EQ(::mincore(at, 2 * kPageBytes, resident), 0) << "it is mapped still";
  EXPECT_EQ(at[0], std::byte{'k'});
  EXPECT_EQ(at[kPageBytes], std::byte{'e'});
  ASSERT_EQ(umap(at, 2 * kPageBytes, kBoth, kFlags, fd, 0), at) << std::strerror(errno);
  EXPECT_EQ(first_difference(at, 2 * kPageBytes), 2 * kPageBytes);
  EXPECT_EQ(uunmap(at, 0), 0);
  ::munmap(kept, 2 * bytes);
}

TEST_F(UmapTest, AnAddressThatIsFreeIsTakenAsWished) {
  if (OUTCORE_TEST_IS_SANITIZED) GTEST_SKIP() << "which addresses are free, sanitizers decide";
  const int fd = file("data", 16 * kPageBytes);
  auto* const wish = reinterpret_cast<void*>(0x6000'0000'0000);
  EXPECT_EQ(umap(wish, 16 * kPageBytes, PROT_READ, UMAP_PRIVATE, fd, 0), wish);
  EXPECT_EQ(first_difference(static_cast<std::byte*>(wish), 16 * kPageBytes), 16 * kPageBytes);
  EXPECT_EQ(uunmap(wish, 16 * kPageBytes), 0);
}

TEST_F(UmapTest, AnAddressThatIsTakenIsOnlyAWish) {
  const int fd = file("data", 16 * kPageBytes);
  void* const taken =
      ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *static_cast<char*>(taken) = 'x';
  void* const at = umap(taken, 16 * kPageBytes, PROT_READ, UMAP_PRIVATE, fd, 0);
  ASSERT_NE(at, UMAP_FAILED);
  EXPECT_NE(at, taken);
  EXPECT_EQ(*static_cast<char*>(taken), 'x');
  EXPECT_EQ(uunmap(at, 16 * kPageBytes), 0);
  ::munmap(taken, kPageBytes);
}

TEST_F(UmapTest, PrefetchedPagesComeIn) {
  const int fd = file("data", 256 * kPageBytes, O_RDONLY);
  std::byte* const at = map(fd, 256 * kPageBytes, PROT_READ);
  std::vector<umap_prefetch_item> items;
  for (uint64_t page = 0; page < 256; page += 2) items.push_back({at + page * kPageBytes});
  errno = ENOTTY;
  umap_prefetch(static_cast<int>(items.size()), items.data());
  umap_prefetch(1, items.data(), 0);  // as programs beside UMap's server call it
  EXPECT_EQ(errno, ENOTTY) << "a success leaves it as it is";
  const auto is_in = [&](uint64_t page) {
    unsigned char resident = 0;
    return ::mincore(at + page * kPageBytes, kPageBytes, &resident) == 0 && (resident & 1) != 0;
  };
  for (uint64_t page = 0; page < 256; page += 2)
    while (!is_in(page)) umap_prefetch(1, &items[page / 2]);  // a hint may be skipped
  EXPECT_EQ(first_difference(at, 256 * kPageBytes), 256 * kPageBytes);
  EXPECT_EQ(uunmap(at, 256 * kPageBytes), 0);
}

TEST_F(UmapTest, PinnedPagesStay) {
  const uint64_t bytes = 64 * kMiB;
  const int fd = open_file("large", O_RDWR | O_CREAT);
  ASSERT_EQ(::ftruncate(fd, bytes), 0);
  std::byte* const at = map(fd, bytes);
  errno = 0;
  umap_fetch_and_pin(reinterpret_cast<char*>(at), kMiB);
  EXPECT_EQ(errno, 0);
  for (uint64_t i = kMiB; i < bytes; i += kPageBytes) at[i] = std::byte{1};
  std::vector<unsigned char> is_resident(kMiB / kPageBytes);
  ASSERT_EQ(::mincore(at, kMiB, is_resident.data()), 0);
  for (const unsigned char c : is_resident) EXPECT_EQ(c & 1, 1);
  EXPECT_EQ(uunmap(at, bytes), 0);
}

// Pages are pinned for the region that did it, whoever else has the file mapped.
TEST_F(UmapTest, PinsEndWithTheirRegion) {
  const uint64_t bytes = 16 * kMiB;
  const int fd = file("data", bytes);
  std::byte* const other = map(fd, bytes, PROT_READ);
  for (uint64_t i = 0; i < 8; ++i) {
    std::byte* const at = map(fd, bytes, PROT_READ);
    errno = 0;
    for (int pin = 0; pin < 2; ++pin)  // they nest
      umap_fetch_and_pin(reinterpret_cast<char*>(at + 2 * i * kMiB), 2 * kMiB);
    umap_fetch_and_pin(reinterpret_cast<char*>(at + 2 * i * kMiB), kMiB);
    ASSERT_EQ(errno, 0) << "region " << i;
    EXPECT_EQ(uunmap(at, bytes), 0);
  }
  EXPECT_EQ(first_difference(other, bytes), bytes);
  EXPECT_EQ(uunmap(other, bytes), 0);
}

TEST_F(UmapTest, APinThatFailsIsNoneToGiveBack) {
  const uint64_t bytes = 64 * kMiB;
  const int fd = file("data", bytes);
  std::byte* const other = map(fd, bytes, PROT_READ);
  std::byte* const at = map(fd, bytes, PROT_READ);
  errno = 0;
  umap_fetch_and_pin(reinterpret_cast<char*>(other), kMiB);
  EXPECT_EQ(errno, 0);
  testing::internal::CaptureStderr();
  umap_fetch_and_pin(reinterpret_cast<char*>(at), bytes);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_NE(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(uunmap(at, bytes), 0);
  for (uint64_t i = kMiB; i < bytes; i += kPageBytes) ASSERT_EQ(other[i], byte_at(i));
  std::vector<unsigned char> is_resident(kMiB / kPageBytes);
  ASSERT_EQ(::mincore(other, kMiB, is_resident.data()), 0);
  for (const unsigned char c : is_resident) EXPECT_EQ(c & 1, 1) << "the other's pin is there still";
  EXPECT_EQ(uunmap(other, bytes), 0);
}

TEST_F(UmapTest, AForkedChildMapsForItself) {
  OUTCORE_NEEDS_THREADS_IN_CHILD();
  const int fd = file("data", 16 * kPageBytes);
  std::byte* const at = map(fd, 16 * kPageBytes);
  const Ending ending = in_child([&] {
    require(uunmap(at, 16 * kPageBytes) == -1 && errno == EINVAL, "the parent's is none of it");
    void* const own = umap(nullptr, 16 * kPageBytes, PROT_READ, UMAP_PRIVATE, fd, 0);
    require(own != UMAP_FAILED, "it maps its own");
    require(static_cast<std::byte*>(own)[kPageBytes] == byte_at(kPageBytes), "it has the bytes");
    return uunmap(own, 16 * kPageBytes);
  });
  EXPECT_TRUE(ending.has_exited(0)) << ending;
  EXPECT_EQ(at[5], byte_at(5));
  EXPECT_EQ(uunmap(at, 16 * kPageBytes), 0);
}

}  // namespace
}  // namespace outcore
