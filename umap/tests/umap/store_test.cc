// Stores that a program wrote for UMap, and those that UMap has.
#include <gmock/gmock.h>

#include <atomic>
#include <mutex>

#include "umap/store/SparseStore.h"
#include "umap/tests/umap/scene.h"

namespace outcore {
namespace {

using namespace scene;

constexpr uint64_t kStorePageBytes = 16 * kKiB;

// Bytes in memory. Notes calls that UMap would not have made.
class MemoryOfProgram : public Umap::Store {
 public:
  explicit MemoryOfProgram(uint64_t size_bytes) : bytes_(pattern(size_bytes)) {}

  ssize_t read_from_store(char* buf, size_t nb, off_t off) override {
    note(buf, nb, off);
    ++reads;
    if (fails_reads) return fail(EREMOTEIO);
    const std::lock_guard<std::mutex> guard(lock_);
    std::memcpy(buf, bytes_.data() + off, nb);
    return static_cast<ssize_t>(nb);
  }
  ssize_t write_to_store(char* buf, size_t nb, off_t off) override {
    note(buf, nb, off);
    ++writes;
    if (fails_writes) return fail(ENOSPC);
    const std::lock_guard<std::mutex> guard(lock_);
    std::memcpy(bytes_.data() + off, buf, nb);
    return 0;  // as some do
  }
  std::byte at(uint64_t offset) {
    const std::lock_guard<std::mutex> guard(lock_);
    return bytes_[offset];
  }

  std::atomic<uint64_t> reads{0}, writes{0}, odd_calls{0};
  std::atomic<bool> fails_reads{false}, fails_writes{false};

 private:
  void note(const char* buf, size_t nb, off_t off) {
    const bool is_page = nb == kStorePageBytes && off % static_cast<off_t>(nb) == 0;
    if (!is_page || reinterpret_cast<uintptr_t>(buf) % kPageBytes != 0) ++odd_calls;
    // What a store asks while a region is mapped or unmapped.
    if (umapcfg_get_umap_page_size() == 0 || umapcfg_get_max_pages_in_buffer() == 0) ++odd_calls;
  }
  static ssize_t fail(int code) {
    errno = code;
    return -1;
  }

  std::mutex lock_;
  Bytes bytes_;
};

class UmapStore : public UmapTest {
 protected:
  static std::byte* map_store(Umap::Store* store, uint64_t size_bytes, int prot = kBoth) {
    void* const at =
        Umap::umap_ex(nullptr, size_bytes, prot, UMAP_PRIVATE, -1, 0, store, kStorePageBytes);
    EXPECT_NE(at, UMAP_FAILED) << std::strerror(errno);
    return static_cast<std::byte*>(at);
  }
};

TEST_F(UmapStore, IsReadAndWrittenInWholePages) {
  constexpr uint64_t kBytes = 32 * kMiB;
  MemoryOfProgram store(kBytes);
  std::byte* const at = map_store(&store, kBytes);
  EXPECT_EQ(first_difference(at, kBytes), kBytes);
  for (uint64_t i = 0; i < kBytes; i += 20'000) at[i] = ~byte_at(i);
  EXPECT_EQ(umap_flush(), 0);
  for (uint64_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(store.at(i), i % 20'000 == 0 ? ~byte_at(i) : byte_at(i)) << i;
  at[5] = std::byte{5};
  EXPECT_EQ(uunmap(at, kBytes), 0);
  EXPECT_EQ(store.at(5), std::byte{5});
  EXPECT_EQ(store.odd_calls, 0U);
  const uint64_t calls = store.reads + store.writes;
  EXPECT_GE(calls, 2 * kBytes / kStorePageBytes);
  EXPECT_EQ(umap_flush(), 0);
  EXPECT_EQ(store.reads + store.writes, calls) << "nobody calls it any more";
}

TEST_F(UmapStore, AFailedWriteKeepsTheRegion) {
  MemoryOfProgram store(kMiB);
  std::byte* const at = map_store(&store, kMiB);
  at[100] = std::byte{1};
  store.fails_writes = true;
  testing::internal::CaptureStderr();
  EXPECT_EQ(umap_flush(), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(uunmap(at, kMiB), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("umap_ex:"));
  EXPECT_EQ(at[100], std::byte{1});
  store.fails_writes = false;
  EXPECT_EQ(uunmap(at, kMiB), 0);
  EXPECT_EQ(store.at(100), std::byte{1});
}

TEST_F(UmapStore, AFailedReadIsASignal) {
  MemoryOfProgram store(kMiB);
  std::byte* const at = map_store(&store, kMiB, PROT_READ);
  store.fails_reads = true;
  EXPECT_EQ(read_of(at).signal, SIGBUS);
  EXPECT_EQ(uunmap(at, kMiB), 0);
}

TEST_F(UmapStore, NeedNotFillAll) {
  struct Short : Umap::Store {
    ssize_t read_from_store(char* buf, size_t, off_t) override {
      buf[0] = 'a';
      return 1;
    }
    ssize_t write_to_store(char*, size_t, off_t) override { return 0; }
  } store;
  std::byte* const at = map_store(&store, 4 * kStorePageBytes, PROT_READ);
  for (uint64_t i = 0; i < 4 * kStorePageBytes; ++i)
    ASSERT_EQ(at[i], i % kStorePageBytes == 0 ? std::byte{'a'} : std::byte{0});
  EXPECT_EQ(uunmap(at, 1), 0);
}

TEST_F(UmapStore, MayStandOnAMadeOne) {
  const int fd = file("data", kMiB);
  const std::unique_ptr<Umap::Store> store(
      Umap::Store::make_store(nullptr, kMiB, kStorePageBytes, fd));
  std::byte* const at = map_store(store.get(), kMiB);
  EXPECT_EQ(first_difference(at, kMiB), kMiB);
  at[kMiB - 1] = std::byte{0x77};
  EXPECT_EQ(uunmap(at, kMiB), 0);
  EXPECT_EQ(byte_of(fd, kMiB - 1), 0x77);
}

// A page is written as a whole, so what one of them writes would be lost to the other.
TEST_F(UmapStore, TwoRegionsThatWriteShareNoPage) {
  constexpr int kFlags = UMAP_PRIVATE;
  const auto map_from = [](Umap::Store* store, uint64_t bytes, int prot, uint64_t offset) {
    return Umap::umap_ex(nullptr, bytes, prot, kFlags, -1, static_cast<off_t>(offset), store,
                         kStorePageBytes);
  };
  constexpr uint64_t kHalf = kStorePageBytes / 2;
  MemoryOfProgram store(kMiB), other(kMiB);
  void* const first = map_from(&store, kHalf, kBoth, 0);
  ASSERT_NE(first, UMAP_FAILED);
  testing::internal::CaptureStderr();
  EXPECT_EQ(map_from(&store, kHalf, kBoth, kHalf), UMAP_FAILED);
  EXPECT_EQ(errno, EBUSY);
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_THAT(line, testing::HasSubstr("shares a page"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1) << line;
  // Readers, the pages behind it and other stores are nobody's business.
  for (void* const at :
       {map_from(&store, kHalf, PROT_READ, kHalf), map_from(&store, kHalf, kBoth, 3 * kHalf),
        map_from(&other, kHalf, kBoth, kHalf)}) {
    ASSERT_NE(at, UMAP_FAILED) << std::strerror(errno);
    EXPECT_EQ(uunmap(at, 0), 0);
  }
  EXPECT_EQ(uunmap(first, 0), 0);
  void* const second = map_from(&store, kHalf, kBoth, kHalf);
  ASSERT_NE(second, UMAP_FAILED) << std::strerror(errno);
  static_cast<std::byte*>(second)[0] = std::byte{2};
  EXPECT_EQ(uunmap(second, 0), 0);
  EXPECT_EQ(store.at(kHalf), std::byte{2});
  EXPECT_EQ(store.at(0), byte_at(0));
}

TEST_F(UmapStore, ASparseStoreMakesFilesAsTheyAreWritten) {
  const std::string root = folder / "sparse";
  {
    Umap::SparseStore store(8 * kMiB, kPageBytes, root, kMiB);
    EXPECT_EQ(store.get_directory_creation_status(), 0);
    std::byte* const at = map_store(&store, 8 * kMiB);
    at[5 * kMiB] = std::byte{5};
    EXPECT_EQ(at[0], std::byte{0});
    EXPECT_EQ(uunmap(at, 8 * kMiB), 0);
    EXPECT_EQ(store.close_files(), 0);
  }
  uint64_t segments = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root))
    segments += entry.path().filename().string().starts_with("segment.");
  EXPECT_EQ(segments, 1U);
  EXPECT_EQ(Umap::SparseStore::get_capacity(root), 8 * kMiB);
  Umap::SparseStore again(root, true);
  EXPECT_EQ(again.get_current_capacity(), 8 * kMiB);
  std::byte* const at = map_store(&again, 8 * kMiB, PROT_READ);
  EXPECT_EQ(at[5 * kMiB], std::byte{5});
  EXPECT_EQ(uunmap(at, 8 * kMiB), 0);
  char page[kPageBytes];
  EXPECT_EQ(again.read_from_store(page, sizeof page, 5 * kMiB), ssize_t{kPageBytes});
  EXPECT_EQ(page[0], 5);
  EXPECT_EQ(again.write_to_store(page, sizeof page, 0), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST_F(UmapStore, ASparseStoreThatCannotBeOpenedSaysWhy) {
  testing::internal::CaptureStderr();
  Umap::SparseStore there(kMiB, kPageBytes, folder.path(), kMiB);
  Umap::SparseStore nowhere(folder / "nowhere", true);
  EXPECT_EQ(there.get_directory_creation_status(), EEXIST);
  EXPECT_EQ(nowhere.get_directory_creation_status(), ENOENT);
  EXPECT_EQ(Umap::umap_ex(nullptr, kMiB, kBoth, UMAP_PRIVATE, -1, 0, &nowhere), UMAP_FAILED);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(Umap::SparseStore::get_capacity(folder / "nowhere"), 0U);
  EXPECT_EQ(errno, ENOENT);
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 4) << lines;
}

}  // namespace
}  // namespace outcore
