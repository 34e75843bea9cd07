// Every container of the standard library in a heap, with more bytes than the budget.
#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "heaps/tests/heap/scene.h"

namespace outcore::tests {
namespace {

using Text = std::basic_string<char, std::char_traits<char>, Allocator<char>>;

class HeapContainers : public testing::Test {
 protected:
  ~HeapContainers() override { EXPECT_EQ(heap.metrics().allocated_blocks, 0U); }
  Runtime runtime = start(4 * kMiB);
  Heap heap = make_heap(runtime);
};

TEST_F(HeapContainers, AVectorGrowsBeyondTheBudget) {
  std::vector<uint64_t, Allocator<uint64_t>> words(heap);
  for (uint64_t i = 0; i < (16 * kMiB) / 8; ++i) words.push_back(i * i);
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < words.size(); ++i) wrong += words[i] != i * i;
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(heap.owns(words.data()));
  EXPECT_GT(runtime.metrics().counters.evictions, 0U);
}

TEST_F(HeapContainers, MapsAndSetsKeepTheirOrder) {
  std::map<uint64_t, uint64_t, std::less<>, Allocator<std::pair<const uint64_t, uint64_t>>> map(
      heap);
  std::set<uint64_t, std::less<>, Allocator<uint64_t>> set(heap);
  std::mt19937_64 random(1);
  for (int i = 0; i < 60000; ++i) {
    const uint64_t key = random() % 100000;
    map[key] = key * 3;
    set.insert(key);
  }
  EXPECT_EQ(map.size(), set.size());
  uint64_t wrong = 0;
  auto at = set.begin();
  for (const auto& [key, value] : map) wrong += value != key * 3 || key != *at++;
  EXPECT_EQ(wrong, 0U);
}

TEST_F(HeapContainers, HashMapsOfTextsAndListsOfThem) {
  std::unordered_map<Text, int, std::hash<std::string_view>, std::equal_to<>,
                     Allocator<std::pair<const Text, int>>>
      map(16, std::hash<std::string_view>(), std::equal_to<>(), heap);
  std::list<Text, Allocator<Text>> list(heap);
  for (int i = 0; i < 20000; ++i) {
    const std::string text = "a key that is too long to lie in place: " + std::to_string(i);
    map.emplace(Text(text, heap), i);
    list.emplace_back(text, heap);
  }
  int wrong = 0, i = 0;
  for (const Text& text : list) wrong += map.at(text) != i++;
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(i, 20000);
}

TEST_F(HeapContainers, PolymorphicOnesUseAResource) {
  HeapResource resource(heap), same(heap);
  EXPECT_TRUE(resource.is_equal(same));
  EXPECT_FALSE(resource.is_equal(*std::pmr::new_delete_resource()));
  std::pmr::vector<std::pmr::string> texts(&resource);
  for (int i = 0; i < 50000; ++i)
    texts.emplace_back("some text that is long enough to be allocated " + std::to_string(i));
  EXPECT_TRUE(heap.owns(texts.front().data()));
  int wrong = 0;
  for (int i = 0; i < 50000; ++i) wrong += !texts[i].ends_with(" " + std::to_string(i));
  EXPECT_EQ(wrong, 0);
}

TEST_F(HeapContainers, AssignmentStaysInItsHeapAndSwapExchangesHeaps) {
  Heap other = make_heap(runtime);
  using Words = std::vector<int, Allocator<int>>;
  Words here(1000, 1, heap), there(1000, 2, other);
  EXPECT_FALSE(here.get_allocator() == there.get_allocator());
  const Words copy(here);
  EXPECT_TRUE(heap.owns(copy.data()));
  there = here;
  EXPECT_TRUE(other.owns(there.data()));
  there = std::move(here);
  EXPECT_TRUE(other.owns(there.data()));
  Words mine(10, 3, heap);
  swap(mine, there);
  EXPECT_TRUE(heap.owns(there.data()));
  EXPECT_TRUE(other.owns(mine.data()));
  EXPECT_EQ(std::accumulate(mine.begin(), mine.end(), 0), 1000);
  Words(other).swap(mine);
}

TEST_F(HeapContainers, PointersOwnWhatTheyPointTo) {
  struct Part {
    explicit Part(int* ended) : count(ended) {}
    ~Part() { ++*count; }
    int* count;
    char bytes[5000];
  };
  int ended = 0;
  {
    HeapPointer<Part> unique = heap.make_unique<Part>(&ended);
    ASSERT_NE(unique, nullptr);
    EXPECT_TRUE(heap.owns(unique.get()));
    const std::shared_ptr<Part> shared = std::allocate_shared<Part>(Allocator<Part>(heap), &ended);
    EXPECT_TRUE(heap.owns(shared.get()));
  }
  EXPECT_EQ(ended, 2);
}

TEST_F(HeapContainers, AConstructorThatThrowsLeavesNothing) {
  struct Bad {
    Bad() { throw 1; }
  };
  EXPECT_THROW(heap.make_unique<Bad>(), int);
  EXPECT_EQ(heap.metrics().allocated_blocks, 0U);
}

TEST_F(HeapContainers, ShortMemoryIsBadAlloc) {
  Heap small = make_heap(runtime, {.reserve_bytes = 64 * kMiB});
  std::vector<char, Allocator<char>> bytes(small);
  EXPECT_THROW(bytes.resize(65 * kMiB), std::bad_alloc);
  HeapResource resource(small);
  EXPECT_THROW(static_cast<void>(resource.allocate(65 * kMiB)), std::bad_alloc);
}

TEST_F(HeapContainers, AMovedHeapIsTheSame) {
  std::deque<int, Allocator<int>> numbers(heap);
  Heap moved = std::move(heap);
  for (int i = 0; i < 100000; ++i) numbers.push_back(i);
  EXPECT_TRUE(moved.owns(&numbers.back()));
  heap = std::move(moved);
}

}  // namespace
}  // namespace outcore::tests
