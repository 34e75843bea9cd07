// Heaps on stores: space is promised at allocation and given back; a full store is told, a store
// that fails is not believed; several heaps side by side; forked children; system calls.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "heaps/tests/heap/scene.h"
#include "tests/folder.h"

namespace outcore::tests {
namespace {

using scene::Folder;

// As large as it says, and with space for `space_bytes` of promises.
class SmallStore final : public Store {
 public:
  explicit SmallStore(uint64_t space_bytes) : space_bytes_(space_bytes) {
    inner_ = std::move(open_store("memory:", {.is_writable = true, .may_create = true})).value();
  }
  uint64_t size_bytes() const override { return inner_->size_bytes(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    return inner_->read(offset, into);
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    return inner_->write(offset, from);
  }
  int resize(uint64_t bytes) override { return inner_->resize(bytes); }
  int reserve(uint64_t, uint64_t bytes) override {
    if (promised_.fetch_add(bytes) + bytes <= space_bytes_) return 0;
    return -ENOSPC;  // a part may have got space: it is released
  }
  int release(uint64_t, uint64_t bytes) override {
    promised_.fetch_sub(bytes);
    return 0;
  }
  StoreTraits traits() const override { return inner_->traits(); }
  std::string uri() const override { return "small:"; }
  uint64_t promised_bytes() const { return promised_.load(); }

 private:
  std::shared_ptr<Store> inner_;
  const uint64_t space_bytes_;
  std::atomic<uint64_t> promised_{0};
};

TEST(HeapStores, AFullStoreIsToldAtAllocationAndRoomHelps) {
  Runtime runtime = start(8 * kMiB);
  auto store = std::make_shared<SmallStore>(32 * kMiB);
  Heap heap = make_heap(runtime, {.store_object = store});
  std::vector<Block> blocks;
  for (;;) {
    Block block{static_cast<unsigned char*>(heap.allocate(kMiB)), kMiB, blocks.size()};
    if (block.bytes == nullptr) break;
    block.fill();
    blocks.push_back(block);
    ASSERT_LE(blocks.size(), 32U);
  }
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_GE(blocks.size(), 30U);
  EXPECT_LE(store->promised_bytes(), 32 * kMiB);
  EXPECT_THAT(heap.try_allocate(kMiB).message(), testing::HasSubstr("small:"));
  for (const Block& block : blocks) EXPECT_TRUE(block.is_right());
  heap.free(blocks.back().bytes);
  heap.free(blocks.front().bytes);
  void* const again = heap.allocate(kMiB);
  EXPECT_NE(again, nullptr);
  // Small blocks have the rest, and then an end, too.
  uint64_t small = 0;
  while (heap.allocate(1000) != nullptr) ++small;
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_GT(small, 900U);
  EXPECT_LE(store->promised_bytes(), 32 * kMiB);
}

TEST(HeapStores, FreedSpaceGoesBackToTheStore) {
  Runtime runtime = start(8 * kMiB);
  auto store = std::make_shared<SmallStore>(UINT64_MAX / 2);
  Heap heap = make_heap(runtime, {.store_object = store, .kept_bytes_max = 2 * kMiB});
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(std::memset(heap.allocate(kMiB), i, kMiB));
  const uint64_t before = store->promised_bytes();
  EXPECT_GE(before, 64 * kMiB);
  EXPECT_EQ(heap.metrics().reserved_bytes, before);
  for (void* const block : blocks) heap.free(block);
  EXPECT_LE(heap.metrics().kept_bytes, 2 * kMiB);
  EXPECT_LE(store->promised_bytes(), before - 62 * kMiB);
  ASSERT_TRUE(heap.trim().ok());
  EXPECT_EQ(heap.metrics().kept_bytes, 0U);
  EXPECT_LE(heap.metrics().resident_bytes, 4 * kMiB);  // but what was read ahead
  // It comes again, without growing.
  const uint64_t addresses = heap.metrics().address_bytes;
  void* const again = heap.allocate_zeroed(60 * kMiB);
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(heap.metrics().address_bytes, addresses);
  EXPECT_GE(store->promised_bytes(), 60 * kMiB);
}

TEST(HeapStores, FreedSpaceOfAFileIsAHole) {
  Folder folder;
  const std::string path = folder.path() + "/heap";
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime, {.store = path, .kept_bytes_max = kMiB});
  void* const block = std::memset(heap.allocate(32 * kMiB), 1, 32 * kMiB);
  struct stat about;
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_GE(about.st_blocks * 512, 32 << 20);
  heap.free(block);
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_LE(about.st_blocks * 512, 4 << 20);
}

TEST(HeapStores, AFileThatHoldsSomethingIsRefused) {
  Folder folder;
  const std::string path = folder.path() + "/data";
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  std::vector<char> bytes(kMiB, 'x');
  ASSERT_EQ(::write(file, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  ::close(file);
  Runtime runtime = start(8 * kMiB);
  const Result<Heap> refused = Heap::create(runtime, {.store = path});
  EXPECT_EQ(refused.code(), EEXIST);
  EXPECT_THAT(refused.message(), testing::HasSubstr("may_overwrite"));
  EXPECT_EQ(std::filesystem::file_size(path), kMiB);
  {
    Heap heap = make_heap(runtime, {.store = path, .may_overwrite = true});
    auto* const zeros = static_cast<char*>(heap.allocate_zeroed(kMiB / 2));
    EXPECT_EQ(std::count(zeros, zeros + kMiB / 2, 0), static_cast<ptrdiff_t>(kMiB / 2));
  }
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
}

TEST(HeapStores, ASmallFileSystemThatIsFullIsToldAtAllocation) {
  Folder folder;
  if (::mount("none", folder.path().c_str(), "tmpfs", 0, "size=16m") != 0)
    GTEST_SKIP() << "a tmpfs cannot be mounted: " << std::strerror(errno);
  {
    Runtime runtime = start(4 * kMiB);
    Heap heap = make_heap(runtime, {.store = "scratch:" + folder.path()});
    uint64_t count = 0, wrong = 0;
    std::vector<Block> blocks;
    for (;; ++count) {
      Block block{static_cast<unsigned char*>(heap.allocate(100000)), 100000, count};
      if (block.bytes == nullptr) break;
      block.fill();
      blocks.push_back(block);
    }
    EXPECT_EQ(errno, ENOSPC);
    EXPECT_GT(count, 100U);
    for (const Block& block : blocks) wrong += !block.is_right();
    EXPECT_EQ(wrong, 0U);
    for (const Block& block : blocks) heap.free(block.bytes);
    ASSERT_TRUE(heap.trim().ok());
    EXPECT_NE(heap.allocate(12 * kMiB), nullptr);
    EXPECT_EQ(heap.allocate(16 * kMiB), nullptr);
  }
  ::umount(folder.path().c_str());
}

TEST(HeapStores, TwoHeapsOnTwoStoresAndRuntimesKeepApart) {
  Folder folder;
  Runtime first = start(4 * kMiB), second = start(6 * kMiB);
  Heap one = make_heap(first, {.store = "scratch:" + folder.path(), .name = "one"});
  Heap two = make_heap(second, {.store = "sparse:" + folder.path() + "/two"});
  Heap three = make_heap(second, {.store = "memory:"});
  std::vector<std::thread> threads;
  std::atomic<uint64_t> wrong{0};
  for (Heap* heap : {&one, &two, &three, &one})
    threads.emplace_back([&wrong, heap] {
      std::vector<uint64_t, Allocator<uint64_t>> words(*heap);
      for (uint64_t i = 0; i < kMiB; ++i) words.push_back(i ^ reinterpret_cast<uintptr_t>(heap));
      for (uint64_t i = 0; i < kMiB; ++i)
        wrong += words[i] != (i ^ reinterpret_cast<uintptr_t>(heap)) || !heap->owns(&words[i]);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(one.name(), "one");
  void* const p = one.allocate(10);
  EXPECT_FALSE(two.owns(p));
  EXPECT_FALSE(three.owns(p));
  one.free(p);
}

TEST(HeapStores, AForkedChildCanNeitherAllocateNorHarm) {
  Runtime runtime = start(8 * kMiB);
  std::optional<Heap> heap(make_heap(runtime));
  auto* const word = static_cast<uint64_t*>(heap->allocate(64));
  *word = 42;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int failures = 0;
    errno = 0;
    failures += heap->allocate(64) != nullptr || errno != EPERM;
    failures += heap->allocate(kMiB) != nullptr || errno != EPERM;
    heap->free(word);
    failures += heap->metrics().allocated_blocks != 0;
    heap.reset();
    Heap own = std::move(Heap::in_memory()).value();
    auto* const mine = static_cast<uint64_t*>(own.allocate(64));
    failures += mine == nullptr;
    own.free(mine);
    ::_exit(failures);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(*word, 42U);
  heap->free(word);
  EXPECT_EQ(heap->metrics().allocated_blocks, 0U);
}

TEST(HeapStores, SystemCallsUseItsMemory) {
  Runtime runtime = start(4 * kMiB);
  Heap heap = make_heap(runtime);
  if (heap.delivery() != Delivery::kMessages)
    GTEST_SKIP() << "delivery by messages is not permitted here";
  constexpr size_t kBytes = 16 * kMiB;
  auto* const bytes = static_cast<char*>(heap.allocate(kBytes));
  Folder folder;
  const int file = ::open((folder.path() + "/f").c_str(), O_CREAT | O_RDWR, 0600);
  for (size_t i = 0; i < kBytes; i += 4096) bytes[i] = static_cast<char>(i / 4096);
  ASSERT_EQ(::write(file, bytes, kBytes), static_cast<ssize_t>(kBytes));
  auto* const copy = static_cast<char*>(heap.allocate(kBytes));
  ASSERT_EQ(::pread(file, copy, kBytes, 0), static_cast<ssize_t>(kBytes));
  ::close(file);
  uint64_t wrong = 0;
  for (size_t i = 0; i < kBytes; i += 4096) wrong += copy[i] != static_cast<char>(i / 4096);
  EXPECT_EQ(wrong, 0U);
}

TEST(HeapStores, InThreadABufferIsPinnedForSystemCalls) {
  Runtime runtime = start(8 * kMiB);
  Heap heap = make_heap(runtime, {.delivery = Delivery::kInThread});
  EXPECT_EQ(heap.delivery(), Delivery::kInThread);
  auto* const bytes = static_cast<char*>(heap.allocate(kMiB));
  ASSERT_TRUE(heap.pin(bytes, kMiB).ok());
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], "hello", 5), 5);
  EXPECT_EQ(::read(ends[0], bytes + 500000, 5), 5);
  EXPECT_EQ(std::string(bytes + 500000, 5), "hello");
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_TRUE(heap.unpin(bytes, kMiB).ok());
}

}  // namespace
}  // namespace outcore::tests
