// hash_map, against a std::map.
#include <map>
#include <random>

#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::take;

template <typename Key>
struct AlwaysTheSame {
  size_t operator()(const Key&) const { return 7; }
};

class PersistentHashMap : public testing::TestWithParam<HeapPaging> {
 protected:
  Folder folder;
  scene::HeapOpener opener{GetParam()};
  const std::string path = folder / "heap";

  template <typename Map>
  void agree_with_a_model(int steps, uint64_t keys) {
    std::mt19937_64 random(5);
    std::map<uint64_t, uint64_t> model;
    for (int cycle = 0; cycle < 4; ++cycle) {
      PersistentHeap heap = take(cycle == 0 ? opener.create(path) : opener.open(path));
      Map& map = *take(heap.find_or_construct<Map>("map"));
      for (int step = 0; step < steps; ++step) {
        const uint64_t key = random() % keys;
        switch (random() % 4) {
          case 0:
            ASSERT_EQ(map.erase(key), model.erase(key));
            break;
          case 1:
            ASSERT_EQ(map.contains(key), model.contains(key));
            break;
          case 2:
            ASSERT_EQ(map.try_emplace(key, key + 1).second, model.try_emplace(key, key + 1).second);
            break;
          default:
            map[key] += 3;
            model[key] += 3;
        }
        ASSERT_EQ(map.size(), model.size());
      }
      uint64_t seen = 0;
      for (const auto& [key, value] : map) {
        ASSERT_EQ(model.at(key), value);
        ++seen;
      }
      ASSERT_EQ(seen, model.size());
      for (const auto& [key, value] : model) ASSERT_EQ(map.find(key)->second, value);
      EXPECT_OK(heap.close());
    }
  }
};

TEST_P(PersistentHashMap, AgreesWithAModel) {
  agree_with_a_model<persistent::hash_map<uint64_t, uint64_t>>(100000, 20000);
}

TEST_P(PersistentHashMap, AgreesWithAModelWhereAllHashesAreAlike) {
  agree_with_a_model<persistent::hash_map<uint64_t, uint64_t, AlwaysTheSame<uint64_t>>>(4000, 200);
}

TEST_P(PersistentHashMap, HandsItsAllocatorOn) {
  using Inner = persistent::hash_map<persistent::string, persistent::vector<persistent::string>>;
  using Map = persistent::hash_map<int, Inner>;
  {
    PersistentHeap heap = take(opener.create(path));
    Map& map = *take(heap.construct<Map>("map"));
    for (int i = 0; i < 100; ++i)
      for (size_t k = 0; k < 20; ++k) {
        const persistent::string key(40 + k, 'k', heap.allocator<char>());
        map[i][key].emplace_back("a value that is far too long for a short string");
      }
    EXPECT_OK(heap.close());
  }
  PersistentHeap heap = take(opener.open(path));
  Map& map = *take(heap.find<Map>("map"));
  ASSERT_EQ(map.size(), 100u);
  for (const auto& [i, inner] : map) {
    ASSERT_EQ(inner.size(), 20u);
    for (const auto& [key, strings] : inner) ASSERT_EQ(strings.at(0).size(), 47u);
  }
  map.clear();
  EXPECT_TRUE(map.begin() == map.end());
  EXPECT_OK(heap.destroy<Map>("map"));
  EXPECT_OK(heap.close());
  EXPECT_EQ(take(persistent_heap_info(path)).in_use_bytes, 0u);
}

TEST_P(PersistentHashMap, IsAsItWasIfTheHeapIsFull) {
  PersistentHeap heap = take(opener.create(path, {.reserve_bytes = uint64_t{4} << 20}));
  auto& map = *take(heap.construct<persistent::hash_map<uint64_t, uint64_t>>("map"));
  uint64_t count = 0;
  EXPECT_THROW(
      {
        for (;; ++count) map.try_emplace(count, count);
      },
      PersistentHeapFull);
  ASSERT_EQ(map.size(), count);
  for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(map.find(i)->second, i);
  EXPECT_EQ(map.erase(uint64_t{0}), 1u);
  EXPECT_OK(heap.close());
}

INSTANTIATE_TEST_SUITE_P(Pagings, PersistentHashMap, scene::kEveryPaging, scene::name_of_paging);

}  // namespace
}  // namespace outcore
