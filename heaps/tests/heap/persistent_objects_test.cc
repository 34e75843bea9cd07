// Named objects of a persistent heap.
#include <stdexcept>

#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::take;

struct Pair {
  uint64_t a = 1, b = 2;
};
struct Other {
  uint64_t a = 1, b = 2;
};
struct alignas(256) Wide {
  uint64_t a = 7;
};
struct Thrower {
  explicit Thrower(int) { throw std::runtime_error("no"); }
};
struct Counted {
  static inline int alive = 0, until_throw = -1;
  Counted() {
    if (until_throw == 0) throw std::runtime_error("no");
    if (until_throw > 0) --until_throw;
    ++alive;
  }
  Counted(const Counted&) = delete;
  ~Counted() { --alive; }
};

class PersistentObjects : public testing::TestWithParam<HeapPaging> {
 protected:
  Folder folder;
  scene::HeapOpener opener{GetParam()};
  const std::string path = folder / "heap";

  PersistentHeap create() { return take(opener.create(path)); }
  PersistentHeap open() { return take(opener.open(path)); }
};

TEST_P(PersistentObjects, AreThereAfterTheHeapWasClosed) {
  {
    PersistentHeap heap = create();
    *take(heap.construct<uint64_t>("count", 41u)) += 1;
    const std::span<int> numbers = take(heap.construct_array<int>("numbers", 1000, 3));
    numbers[999] = 5;
    EXPECT_OK(heap.close());
  }
  EXPECT_TRUE(take(PersistentHeap::is_consistent(path)));
  PersistentHeap heap = open();
  EXPECT_EQ(*take(heap.find<uint64_t>("count")), 42u);
  const std::span<int> numbers = take(heap.find_array<int>("numbers"));
  ASSERT_EQ(numbers.size(), 1000u);
  EXPECT_EQ(numbers[998], 3);
  EXPECT_EQ(numbers[999], 5);
}

TEST_P(PersistentObjects, AreClosedByTheDestructorToo) {
  { *take(create().construct<int>("one", 0)) = 1; }
  EXPECT_TRUE(take(PersistentHeap::is_consistent(path)));
  EXPECT_EQ(*take(open().find<int>("one")), 1);
}

TEST_P(PersistentObjects, HaveNamesOfTheirOwn) {
  PersistentHeap heap = create();
  take(heap.construct<int>("one", 1));
  EXPECT_EQ(heap.construct<int>("one", 2).code(), EEXIST);
  EXPECT_EQ(*take(heap.find<int>("one")), 1);
  EXPECT_EQ(heap.find<int>("two").code(), ENOENT);
  EXPECT_EQ(*take(heap.find_or_construct<int>("one", 9)), 1);
  EXPECT_EQ(*take(heap.find_or_construct<int>("two", 9)), 9);
  take(heap.construct<int>("", 3));  // the empty name is one like any other
  EXPECT_EQ(*take(heap.find<int>("")), 3);
  EXPECT_EQ(heap.construct<int>(std::string(70000, 'x'), 1).code(), EINVAL);
}

TEST_P(PersistentObjects, AreFoundByTheirTypeOnly) {
  PersistentHeap heap = create();
  take(heap.construct<Pair>("pair"));
  const Result<Other*> other = heap.find<Other>("pair");
  EXPECT_EQ(other.code(), EINVAL);
  EXPECT_NE(other.message().find("Pair"), std::string::npos) << other.message();
  EXPECT_NE(other.message().find("Other"), std::string::npos) << other.message();
  EXPECT_EQ(heap.find_or_construct<Other>("pair").code(), EINVAL);
  EXPECT_EQ(heap.destroy<Other>("pair").code(), EINVAL);
  EXPECT_TRUE(heap.find<Pair>("pair").ok());
}

TEST_P(PersistentObjects, AreToldByName) {
  PersistentHeap heap = create();
  take(heap.construct<Pair>("b"));
  take(heap.construct_array<uint16_t>("a", 7));
  std::vector<PersistentObject> all;
  heap.for_each([&](const PersistentObject& object) { all.push_back(object); });
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].type, "unsigned short");
  EXPECT_EQ(all[0].count, 7u);
  EXPECT_EQ(all[0].element_bytes, 2u);
  EXPECT_EQ(all[1].name, "b");
  EXPECT_EQ(all[1].element_bytes, sizeof(Pair));
}

TEST_P(PersistentObjects, EndWhenTheyAreDestroyed) {
  Counted::alive = 0;
  PersistentHeap heap = create();
  take(heap.construct_array<Counted>("some", 10));
  EXPECT_EQ(Counted::alive, 10);
  EXPECT_OK(heap.destroy<Counted>("some"));
  EXPECT_EQ(Counted::alive, 0);
  EXPECT_EQ(heap.destroy<Counted>("some").code(), ENOENT);
  take(heap.construct<int>("some", 1));
}

TEST_P(PersistentObjects, AreNotThereIfTheirConstructorThrows) {
  PersistentHeap heap = create();
  EXPECT_THROW(static_cast<void>(heap.construct<Thrower>("it", 1)), std::runtime_error);
  EXPECT_EQ(heap.find<Thrower>("it").code(), ENOENT);
  Counted::alive = 0;
  Counted::until_throw = 5;
  EXPECT_THROW(static_cast<void>(heap.construct_array<Counted>("it", 10)), std::runtime_error);
  Counted::until_throw = -1;
  EXPECT_EQ(Counted::alive, 0);
  EXPECT_EQ(heap.find<Counted>("it").code(), ENOENT);
  EXPECT_OK(heap.close());
  EXPECT_EQ(open().info().in_use_bytes, 0u);
}

TEST_P(PersistentObjects, AreAligned) {
  PersistentHeap heap = create();
  for (int i = 0; i < 50; ++i) {
    Wide* wide = take(heap.construct<Wide>(std::to_string(i)));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(wide) % alignof(Wide), 0u);
  }
  for (uint64_t alignment = 1; alignment <= 4096; alignment *= 2)
    for (const uint64_t size : {1, 100, 5000, 40000, 100000}) {
      void* object = take(heap.allocate(size, alignment));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(object) % alignment, 0u);
      heap.deallocate(object);
    }
  EXPECT_EQ(heap.allocate(1, 8192).code(), EINVAL);
  EXPECT_EQ(heap.allocate(1, 24).code(), EINVAL);
}

TEST_P(PersistentObjects, HaveAVersionOfTheProgramsOwn) {
  {
    PersistentHeap heap = take(opener.create(path, {.version = 3}));
    EXPECT_OK(heap.close());
  }
  EXPECT_TRUE(opener.open(path).ok());
  EXPECT_TRUE(opener.open(path, {.version = 3}).ok());
  const auto other = opener.open(path, {.version = 4});
  EXPECT_EQ(other.code(), EINVAL);
  EXPECT_NE(other.message().find("version 3"), std::string::npos) << other.message();
  EXPECT_TRUE(take(PersistentHeap::is_consistent(path)));
}

TEST_P(PersistentObjects, StopTheProgramIfFreedTwice) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child starts threads of its own
  EXPECT_DEATH(
      {
        scene::HeapOpener own(GetParam());
        PersistentHeap heap = take(own.create(folder / "twice"));
        void* object = take(heap.allocate(100000));
        heap.deallocate(object);
        heap.deallocate(object);
      },
      "not in use");
}

TEST(PersistentObjectsAlone, NeedNoRuntimeOfTheCallers) {
  const Folder folder;
  ::setenv("OUTCORE_BUDGET", "16M", 1);
  {
    PersistentHeap heap = take(PersistentHeap::create(folder / "a"));
    PersistentHeap second = take(PersistentHeap::create(folder / "b"));
    take(heap.construct<int>("one", 1));
    take(second.construct<int>("one", 2));
    EXPECT_OK(heap.close());
  }
  ::unsetenv("OUTCORE_BUDGET");
  EXPECT_EQ(*take(take(PersistentHeap::open_read_only(folder / "b")).find<int>("one")), 2);
}

INSTANTIATE_TEST_SUITE_P(Pagings, PersistentObjects, scene::kEveryPaging, scene::name_of_paging);

}  // namespace
}  // namespace outcore
