// How persistent heaps grow, shrink and are copied.
#include <sys/stat.h>

#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::QuotaStore;
using scene::start_runtime;
using scene::take;

uint64_t disk_bytes(const std::string& path) {
  struct stat about {};
  EXPECT_EQ(::stat(path.c_str(), &about), 0);
  return static_cast<uint64_t>(about.st_blocks) * 512;
}

class PersistentSpace : public testing::TestWithParam<HeapPaging> {
 protected:
  Folder folder;
  scene::HeapOpener opener{GetParam()};
  const std::string path = folder / "heap";
};

class PersistentSpaceOfARegion : public testing::Test {
 protected:
  Folder folder;
  Runtime runtime = start_runtime();
  const std::string path = folder / "heap";
};

TEST_P(PersistentSpace, IsReturnedWhenItIsFreed) {
  constexpr uint64_t kMany = 64 << 20;
  PersistentHeap heap = take(opener.create(path));
  auto& kept = *take(heap.construct<persistent::vector<int>>("kept", 1000u, 3));
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> all;
    for (uint64_t bytes = 0; bytes < kMany; bytes += 3000) all.push_back(take(heap.allocate(3000)));
    void* large = take(heap.allocate(kMany));
    std::memset(large, 1, kMany);
    EXPECT_GE(disk_bytes(path), 2 * kMany);
    for (void* object : all) heap.deallocate(object);
    heap.deallocate(large);
    EXPECT_OK(heap.trim());
    EXPECT_LT(disk_bytes(path), uint64_t{4} << 20);
  }
  EXPECT_OK(heap.close());
  EXPECT_LT(std::filesystem::file_size(path), uint64_t{1} << 20);
  PersistentHeap again = take(opener.open(path));
  EXPECT_EQ(take(again.find<persistent::vector<int>>("kept"))->size(), 1000u);
  static_cast<void>(kept);
}

TEST_F(PersistentSpaceOfARegion, IsReturnedWithoutBeingAskedFor) {
  const auto store = std::make_shared<QuotaStore>();
  PersistentHeap heap = take(PersistentHeap::create(runtime, store));
  for (int round = 0; round < 10; ++round) {
    std::vector<void*> all;
    for (int i = 0; i < 200; ++i) all.push_back(take(heap.allocate(200000)));
    for (void* object : all) heap.deallocate(object);
  }
  EXPECT_LT(store->used_bytes(), uint64_t{12} << 20);
  EXPECT_LT(heap.info().size_bytes, uint64_t{100} << 20);
}

TEST_P(PersistentSpace, InTheMiddleBecomesAHole) {
  PersistentHeap heap = take(opener.create(path));
  void* first = take(heap.allocate(uint64_t{32} << 20));
  char* last = static_cast<char*>(take(heap.allocate(1 << 20)));
  std::memset(last, 'l', 1 << 20);
  heap.deallocate(first);
  EXPECT_OK(heap.flush());
  EXPECT_OK(heap.trim());
  EXPECT_LT(disk_bytes(path), uint64_t{8} << 20);
  for (int i = 0; i < 1 << 20; ++i) ASSERT_EQ(last[i], 'l');
  // And what takes its place has space again.
  char* again = static_cast<char*>(take(heap.allocate(uint64_t{16} << 20)));
  EXPECT_LT(again, last);
  std::memset(again, 'a', uint64_t{16} << 20);
  EXPECT_OK(heap.close());
  EXPECT_TRUE(take(persistent_heap_check(path)).empty());
}

TEST_P(PersistentSpace, GrowsAsFarAsWasReserved) {
  PersistentHeap heap = take(opener.create(path, {.reserve_bytes = uint64_t{64} << 20}));
  const Result<void*> object = heap.allocate(uint64_t{80} << 20);
  EXPECT_EQ(object.code(), ENOMEM);
  EXPECT_NE(object.message().find("reserve_bytes"), std::string::npos) << object.message();
  take(heap.allocate(uint64_t{40} << 20));
  EXPECT_OK(heap.close());
  PersistentHeap more = take(opener.open(path, {.reserve_bytes = uint64_t{256} << 20}));
  take(more.allocate(uint64_t{80} << 20));
}

// With 16-byte cells metadata are largest.
TEST_P(PersistentSpace, ThatIsUsedUpLeavesRoomForTheMetadata) {
  uint64_t made = 0;
  {
    PersistentHeap heap = take(opener.create(path, {.reserve_bytes = uint64_t{16} << 20}));
    Result<void*> object = heap.allocate(16);
    for (; object.ok(); object = heap.allocate(16)) ++made;
    EXPECT_EQ(object.code(), ENOMEM);
    EXPECT_GT(made, uint64_t{900} << 10);
    for (int i = 0; i < 3; ++i) EXPECT_OK(heap.flush());
    EXPECT_EQ(heap.allocate(uint64_t{64} << 10).code(), ENOMEM);  // not what metadata may take
    EXPECT_OK(heap.close());
  }
  PersistentHeap again = take(opener.open(path));
  EXPECT_GE(again.info().in_use_bytes, made * 16);
}

TEST_F(PersistentSpaceOfARegion, OfMetadataIsUsedAgain) {
  const auto store = std::make_shared<QuotaStore>();
  PersistentHeap heap = take(PersistentHeap::create(runtime, store));
  take(heap.construct<int>("one", 1));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(heap.flush().ok());
  EXPECT_LT(store->used_bytes(), uint64_t{4} << 20);
  EXPECT_OK(heap.close());
  for (int i = 0; i < 20; ++i) {
    PersistentHeap again = take(PersistentHeap::open(runtime, store));
    EXPECT_OK(again.close());
  }
  EXPECT_LE(store->used_bytes(), uint64_t{4} * 65536);
}

TEST_F(PersistentSpaceOfARegion, LargePagesDoNotMatter) {
  for (const uint64_t page_bytes : {uint64_t{64} << 10, uint64_t{2} << 20}) {
    const std::string name = folder / std::to_string(page_bytes);
    Runtime large = start_runtime(uint64_t{64} << 20);
    {
      PersistentHeap heap = take(PersistentHeap::create(large, name, {.page_bytes = page_bytes}));
      auto& v = *take(heap.construct<persistent::vector<uint64_t>>("v"));
      for (uint64_t i = 0; i < 300000; ++i) {
        v.push_back(i);
        if (i % 100000 == 0) {
          EXPECT_OK(heap.flush());
        }
      }
      EXPECT_OK(heap.close());
    }
    EXPECT_TRUE(take(persistent_heap_check(name)).empty());
    PersistentHeap heap = take(PersistentHeap::open(large, name));
    auto& v = *take(heap.find<persistent::vector<uint64_t>>("v"));
    for (uint64_t i = 0; i < 300000; ++i) ASSERT_EQ(v[i], i);
  }
}

TEST_P(PersistentSpace, IsCopiedWhole) {
  PersistentHeap heap = take(opener.create(path));
  auto& v = *take(heap.construct<persistent::vector<uint64_t>>("v"));
  for (uint64_t i = 0; i < 100000; ++i) v.push_back(i);
  take(heap.allocate(uint64_t{64} << 20));  // a hole
  const std::string to = folder / "copy";
  EXPECT_OK(heap.copy(to));
  EXPECT_EQ(heap.copy(to).code(), EEXIST);
  v.push_back(0);  // of the original only
  EXPECT_FALSE(take(PersistentHeap::is_consistent(path)));
  EXPECT_TRUE(take(PersistentHeap::is_consistent(to)));
  EXPECT_TRUE(take(persistent_heap_check(to)).empty());
  {
    PersistentHeap copy = take(opener.open(to));
    auto& theirs = *take(copy.find<persistent::vector<uint64_t>>("v"));
    ASSERT_EQ(theirs.size(), 100000u);
    for (uint64_t i = 0; i < 100000; ++i) ASSERT_EQ(theirs[i], i);
    theirs.clear();
    EXPECT_OK(copy.close());
  }
  ASSERT_EQ(v.size(), 100001u);
  EXPECT_OK(heap.copy("sparse:" + (folder / "pieces") + "?segment=1M"));
  EXPECT_OK(heap.close());
  Runtime runtime = start_runtime();
  PersistentHeap pieces = take(PersistentHeap::open(runtime, "sparse:" + (folder / "pieces")));
  EXPECT_EQ(take(pieces.find<persistent::vector<uint64_t>>("v"))->size(), 100001u);
  // Readers copy, too.
  PersistentHeap reader = take(opener.open_read_only(path));
  EXPECT_OK(reader.copy(folder / "third"));
  EXPECT_EQ(scene::read_file(path), scene::read_file(folder / "third"));
  EXPECT_EQ(reader.copy(folder / "no/folder").code(), ENOENT);
}

TEST_F(PersistentSpaceOfARegion, OfACopyThatFailsIsGivenBack) {
  const auto store = std::make_shared<QuotaStore>();
  PersistentHeap heap = take(PersistentHeap::create(runtime, store));
  take(heap.construct_array<char>("bytes", 1 << 20, 'x'));
  store->sync_error = EIO;
  EXPECT_EQ(heap.copy(path).code(), EIO);
  EXPECT_FALSE(std::filesystem::exists(path));
}

INSTANTIATE_TEST_SUITE_P(Pagings, PersistentSpace, scene::kEveryPaging, scene::name_of_paging);

}  // namespace
}  // namespace outcore
