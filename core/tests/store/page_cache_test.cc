// Files that are in the kernel's page cache, in whole or in part, and are read directly.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/store/file_store.h"
#include "core/tests/store/store_case.h"

namespace outcore::store_test {
namespace {

// Pages that the program has written by calls of its own are read by the page cache, the others
// between them direct: whatever is told, the bytes are right.
TEST(FileStorePageCache, PagesThatTheProgramWroteByCallsAreReadAsTheyAre) {
  constexpr uint64_t kPages = 64;
  const Folder folder;
  const std::string path = folder / "data";
  Bytes bytes = random_bytes(kPages * 4096, 3);
  AlignedBytes read(bytes.size());
  write_file(path, bytes);
  const auto store = open_file(path);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  auto& file = dynamic_cast<store::FileStore&>(*store);
  for (uint64_t round = 0; round < 50; ++round) {
    const uint64_t at = round * 7919 % (bytes.size() - 5000), size = 1 + round * 101 % 5000;
    std::fill_n(bytes.begin() + static_cast<int64_t>(at), size, static_cast<std::byte>(round));
    ASSERT_EQ(::pwrite(fd, bytes.data() + at, size, static_cast<off_t>(at)),
              static_cast<ssize_t>(size));
    if (round % 3 != 0) file.note_cached(at, size);
    ASSERT_EQ(store->read(0, read.span()), 0);
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), read.span().begin())) << round;
  }
  ::close(fd);
}

// How many pages of the first `size_bytes` of a file are in the kernel's cache.
size_t cached_pages(int fd, size_t size_bytes) {
  void* view = ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, fd, 0);
  EXPECT_NE(view, MAP_FAILED);
  std::vector<unsigned char> is_cached(size_bytes / 4096);
  EXPECT_EQ(::mincore(view, size_bytes, is_cached.data()), 0);
  ::munmap(view, size_bytes);
  return static_cast<size_t>(
      std::count_if(is_cached.begin(), is_cached.end(), [](unsigned char c) { return c & 1; }));
}

TEST(FileStorePageCache, DirectReadsDoNotFillThePageCache) {
  constexpr size_t kFileBytes = 8 << 20;
  const Folder folder;
  write_file(folder / "f", random_bytes(kFileBytes, 5));
  const auto store = open_store("file:" + (folder / "f") + "?direct=on");
  if (!store) GTEST_SKIP() << store.message();
  const int fd = ::open((folder / "f").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::fsync(fd), 0);
  // The kernel may keep some pages for a moment: the test is that there are not more.
  ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
  const size_t before = cached_pages(fd, kFileBytes);
  ASSERT_LT(before, kFileBytes / 4096 / 2);
  AlignedBytes buffer(kFileBytes);
  ASSERT_EQ(store.value()->read(0, buffer.span()), 0);
  EXPECT_LE(cached_pages(fd, kFileBytes), before);
  ::close(fd);
}

// What this process has read from devices.
uint64_t device_bytes_read() {
  std::ifstream file("/proc/self/io");
  std::string key;
  for (uint64_t bytes = 0; file >> key >> bytes;)
    if (key == "read_bytes:") return bytes;
  return UINT64_MAX;
}

TEST(FileStorePageCache, WhatThePageCacheHasIsReadFromNoDevice) {
  constexpr size_t kFileBytes = 4 << 20;
  const Folder folder;
  const Bytes bytes = random_bytes(kFileBytes, 8);
  write_file(folder / "f", bytes);
  const int fd = ::open((folder / "f").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::fsync(fd), 0);
  const auto direct = open_store("file:" + (folder / "f") + "?direct=on");
  if (!direct) GTEST_SKIP() << direct.message();
  AlignedBytes buffer(kFileBytes);
  for (const bool is_cached : {true, false}) {
    if (!is_cached) {
      ASSERT_EQ(::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    }
    const size_t pages = cached_pages(fd, kFileBytes);
    for (const size_t at_once : {size_t{4096}, size_t{1} << 20}) {  // alone, and in a batch
      const auto store = open_file(folder / "f");
      const uint64_t before = device_bytes_read();
      std::vector<StoreRequest> batch;
      for (size_t at = 0; at < kFileBytes; at += at_once)
        batch.push_back({at, buffer.data() + at, at_once, false, 77});
      if (at_once == 4096)
        for (StoreRequest& r : batch) r.result = store->read(r.offset, {r.bytes, r.size_bytes});
      else
        store->transfer(batch);
      const uint64_t from_device = device_bytes_read() - before;
      for (const StoreRequest& r : batch) EXPECT_EQ(r.result, 0);
      EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), buffer.span().begin()));
      if (is_cached) {
        EXPECT_LE(from_device, kFileBytes - pages * 4096) << at_once;
      } else {
        EXPECT_GE(from_device, kFileBytes - pages * 4096) << at_once;
      }
    }
  }
  // Whoever asks for it gets the device.
  ASSERT_EQ(::pread(fd, buffer.data(), kFileBytes, 0), static_cast<ssize_t>(kFileBytes));
  const uint64_t before = device_bytes_read();
  ASSERT_EQ(direct.value()->read(0, buffer.span()), 0);
  EXPECT_GE(device_bytes_read() - before, kFileBytes);
  ::close(fd);
}

// Written by us directly and by another through the page cache, which loses pages at any time.
TEST(FileStorePageCache, PagesThatComeAndGoInThePageCacheAreReadAsTheyAre) {
  constexpr uint64_t kPages = 64;
  const Folder folder;
  Bytes bytes = random_bytes(kPages * 4096, 9);
  write_file(folder / "f", bytes);
  OpenOptions writable;
  writable.is_writable = true;
  const auto store = open_file(folder / "f", writable);
  const int fd = ::open((folder / "f").c_str(), O_RDWR | O_CLOEXEC);
  AlignedBytes buffer(bytes.size());
  std::mt19937 random(10);
  for (int round = 0; round < 300; ++round) {
    const uint64_t at = random() % kPages * 4096, size = 4096 * (1 + random() % 4);
    const uint64_t end = std::min<uint64_t>(at + size, bytes.size());
    std::fill(bytes.begin() + static_cast<ptrdiff_t>(at),
              bytes.begin() + static_cast<ptrdiff_t>(end), static_cast<std::byte>(round));
    std::copy_n(bytes.begin() + static_cast<ptrdiff_t>(at), end - at, buffer.data());
    if (round % 2 == 0)
      ASSERT_EQ(store->write(at, buffer.span().first(end - at)), 0);
    else
      ASSERT_EQ(::pwrite(fd, buffer.data(), end - at, static_cast<off_t>(at)),
                static_cast<ssize_t>(end - at));
    if (random() % 8 == 0) {
      ASSERT_EQ(::fsync(fd), 0);
      ASSERT_EQ(::posix_fadvise(fd, static_cast<off_t>(random() % bytes.size()), 1 << 16,
                                POSIX_FADV_DONTNEED),
                0);
    }
    const uint64_t first = random() % kPages;
    const auto part = buffer.span().subspan(first * 4096);
    ASSERT_EQ(store->read(first * 4096, part), 0);
    ASSERT_TRUE(
        std::equal(part.begin(), part.end(), bytes.begin() + static_cast<ptrdiff_t>(first * 4096)))
        << round;
  }
  ::close(fd);
}

}  // namespace
}  // namespace outcore::store_test
