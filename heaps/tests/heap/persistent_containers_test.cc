// Containers that rest in a persistent heap.
#include <map>

#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::take;

namespace p = persistent;
using Graph = p::unordered_map<uint64_t, p::vector<uint64_t>>;
using Index = p::map<p::string, p::vector<p::string>>;
using Deep = p::vector<p::unordered_map<int, p::map<int, p::vector<p::string>>>>;

class PersistentContainers : public testing::TestWithParam<HeapPaging> {
 protected:
  Folder folder;
  scene::HeapOpener opener{GetParam()};
  const std::string path = folder / "heap";
};

TEST_P(PersistentContainers, AreThereAtAnotherAddress) {
  std::byte* old_base = nullptr;
  uint64_t old_bytes = 0;
  {
    PersistentHeap heap = take(opener.create(path, {.reserve_bytes = 1 << 30}));
    Graph* graph = take(heap.construct<Graph>("graph"));
    for (uint64_t i = 0; i < 20000; ++i) (*graph)[i % 1000].push_back(i);
    Index* index = take(heap.construct<Index>("index"));
    {  // it has memory of the heap, too: it must end before the heap is closed
      const p::string key("a key that is too long for a short string", heap.allocator<char>());
      (*index)[key].emplace_back("a value that is too long for a short string");
      (*index)[key].emplace_back("short");
    }
    old_base = heap.core().base();
    old_bytes = 1 << 30;
    EXPECT_OK(heap.close());
  }
  void* taken = ::mmap(old_base, old_bytes, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  ASSERT_EQ(taken, old_base);
  {
    PersistentHeap heap = take(opener.open(path));
    EXPECT_NE(heap.core().base(), old_base);
    Graph& graph = *take(heap.find<Graph>("graph"));
    ASSERT_EQ(graph.size(), 1000u);
    for (uint64_t v = 0; v < 1000; ++v) {
      ASSERT_EQ(graph[v].size(), 20u);
      for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(graph[v][i], v + i * 1000);
    }
    Index& index = *take(heap.find<Index>("index"));
    ASSERT_EQ(index.size(), 1u);
    EXPECT_EQ(index.begin()->first, "a key that is too long for a short string");
    EXPECT_EQ(index.begin()->second.at(1), "short");
    graph[5000].push_back(1);  // and they grow there
    EXPECT_OK(heap.close());
  }
  ::munmap(taken, old_bytes);
}

TEST_P(PersistentContainers, NestAsDeepAsOneLikes) {
  {
    PersistentHeap heap = take(opener.create(path));
    Deep* deep = take(heap.construct<Deep>("deep"));
    for (int i = 0; i < 5; ++i) {
      deep->emplace_back();
      for (int k = 0; k < 5; ++k)
        for (int m = 0; m < 5; ++m)
          (*deep)[static_cast<size_t>(i)][k][m].emplace_back(40, static_cast<char>('a' + m));
    }
    EXPECT_OK(heap.close());
  }
  PersistentHeap heap = take(opener.open(path));
  Deep& deep = *take(heap.find<Deep>("deep"));
  ASSERT_EQ(deep.size(), 5u);
  for (auto& outer : deep)
    for (auto& [k, inner] : outer)
      for (auto& [m, strings] : inner)
        EXPECT_EQ(strings.at(0), std::string(40, static_cast<char>('a' + m)).c_str());
  EXPECT_OK(heap.destroy<Deep>("deep"));
  EXPECT_EQ(heap.info().objects.size(), 0u);
  EXPECT_OK(heap.close());
  EXPECT_EQ(take(persistent_heap_info(path)).in_use_bytes, 0u);
}

TEST_P(PersistentContainers, AreOfEveryKind) {
  {
    PersistentHeap heap = take(opener.create(path));
    auto& deque = *take(heap.construct<p::deque<int>>("deque"));
    auto& list = *take(heap.construct<p::list<p::string>>("list"));
    auto& set = *take(heap.construct<p::set<int>>("set"));
    auto& hash = *take(heap.construct<p::unordered_set<int>>("hash"));
    auto& flat = *take(heap.construct<p::flat_map<int, p::string>>("flat"));
    auto& sorted = *take(heap.construct<p::flat_set<int>>("sorted"));
    auto& multi = *take(heap.construct<p::multimap<int, int>>("multi"));
    auto& text = *take(heap.construct<p::string>("text", "hello"));
    for (int i = 0; i < 3000; ++i) {
      deque.push_front(i);
      set.insert(i / 2);
      hash.insert(i / 3);
      sorted.insert(-i);
      multi.emplace(i % 10, i);
      text += 'x';
    }
    list.emplace_back("a string that is far too long to be short");
    flat.emplace(3,
                 p::string("three and some more, so that it is allocated", heap.allocator<char>()));
    EXPECT_OK(heap.close());
  }
  PersistentHeap heap = take(opener.open_read_only(path));
  EXPECT_EQ(take(heap.find<p::deque<int>>("deque"))->front(), 2999);
  EXPECT_EQ(take(heap.find<p::list<p::string>>("list"))->front().size(), 41u);
  EXPECT_EQ(take(heap.find<p::set<int>>("set"))->size(), 1500u);
  EXPECT_TRUE(take(heap.find<p::unordered_set<int>>("hash"))->count(999) == 1);
  EXPECT_EQ((take(heap.find<p::flat_map<int, p::string>>("flat"))->at(3)).substr(0, 5), "three");
  EXPECT_EQ(*take(heap.find<p::flat_set<int>>("sorted"))->begin(), -2999);
  EXPECT_EQ((take(heap.find<p::multimap<int, int>>("multi"))->count(3)), 300u);
  EXPECT_EQ(take(heap.find<p::string>("text"))->size(), 3005u);
}

TEST_P(PersistentContainers, ThrowWhatTheHeapSays) {
  PersistentHeap heap = take(opener.create(path, {.reserve_bytes = uint64_t{8} << 20}));
  auto& vector = *take(heap.construct<p::vector<uint64_t>>("vector"));
  try {
    for (uint64_t i = 0;; ++i) vector.push_back(i);
  } catch (const PersistentHeapFull& full) {
    EXPECT_EQ(full.error().code, ENOMEM);
    EXPECT_NE(std::string(full.what()).find("reserve_bytes"), std::string::npos) << full.what();
  }
  for (uint64_t i = 0; i < vector.size(); ++i) ASSERT_EQ(vector[i], i);
  const auto made = heap.construct<p::vector<uint64_t>>("large", size_t{2} << 20, 1u);
  EXPECT_EQ(made.code(), ENOMEM);
  EXPECT_EQ(heap.find<p::vector<uint64_t>>("large").code(), ENOENT);
  EXPECT_OK(heap.close());
}

TEST_P(PersistentContainers, OfTwoHeapsDoNotMix) {
  PersistentHeap a = take(opener.create(folder / "a"));
  PersistentHeap b = take(opener.create(folder / "b"));
  auto& in_a = *take(a.construct<p::vector<p::string>>("v"));
  auto& in_b = *take(b.construct<p::vector<p::string>>("v"));
  for (int i = 0; i < 1000; ++i) {
    in_a.emplace_back(100, 'a');
    in_b.emplace_back(100, 'b');
  }
  in_b = in_a;  // copies
  EXPECT_OK(a.close());
  for (const p::string& s : in_b) ASSERT_EQ(s, std::string(100, 'a').c_str());
  EXPECT_FALSE(in_b.get_allocator().outer_allocator() == PersistentAllocator<int>(nullptr));
}

TEST_P(PersistentContainers, OfAReadOnlyHeapCannotGrow) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // the child starts threads of its own
  {
    PersistentHeap heap = take(opener.create(path));
    take(heap.construct<p::vector<int>>("v", 10u, 1));
  }
  PersistentHeap heap = take(opener.open_read_only(path));
  EXPECT_THROW(heap.allocator<int>().allocate(1), PersistentHeapFull);
  EXPECT_EQ(heap.allocate(1).code(), EACCES);
  EXPECT_EQ(heap.construct<int>("x", 1).code(), EACCES);
  EXPECT_EQ(heap.destroy<p::vector<int>>("v").code(), EACCES);
  EXPECT_EQ(heap.flush().code(), EACCES);
  EXPECT_OK(heap.close());
  EXPECT_EXIT(
      {
        scene::HeapOpener own(GetParam());
        PersistentHeap mine = take(own.open_read_only(path));
        (*take(mine.find<p::vector<int>>("v")))[0] = 2;
      },
      testing::KilledBySignal(SIGSEGV), "");
}

INSTANTIATE_TEST_SUITE_P(Pagings, PersistentContainers, scene::kEveryPaging, scene::name_of_paging);

}  // namespace
}  // namespace outcore
