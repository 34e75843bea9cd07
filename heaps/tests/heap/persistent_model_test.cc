// Random operations on a persistent heap that is several times its budget, closed and opened again
// and again, against a model; and many threads at once.
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <tuple>

#include "heaps/tests/heap/persistent_scene.h"

namespace outcore {
namespace {

using scene::Folder;
using scene::take;

uint64_t mix(uint64_t x) {
  x ^= x >> 31, x *= 0xD6E8FEB86659FD93ull, x ^= x >> 32;
  return x;
}

// An object's bytes follow from its key and size.
void fill(std::byte* at, uint64_t key, uint64_t size) {
  for (uint64_t i = 0; i < size; i += 512) at[i] = static_cast<std::byte>(mix(key + i));
  at[size - 1] = static_cast<std::byte>(key);
}
bool is_filled(const std::byte* at, uint64_t key, uint64_t size) {
  if (at[size - 1] != static_cast<std::byte>(key)) return false;
  for (uint64_t i = 0; i + 1 < size; i += 512)
    if (at[i] != static_cast<std::byte>(mix(key + i))) return false;
  return true;
}

uint64_t random_size(std::mt19937_64& random) {
  switch (random() % 20) {
    case 0:
      return 1 + random() % 300000;
    case 1:
    case 2:
      return 1 + random() % 70000;
    default:
      return 1 + random() % 2000;
  }
}

struct Entry {
  PersistentPointer<std::byte> bytes;
  uint64_t size = 0;
};
using Table = persistent::unordered_map<uint64_t, Entry>;

using SeedAndPaging = std::tuple<uint64_t, HeapPaging>;
class PersistentModel : public testing::TestWithParam<SeedAndPaging> {};

TEST_P(PersistentModel, HoldsAcrossClosings) {
  const Folder folder;
  const std::string path = folder / "heap";
  std::mt19937_64 random(std::get<0>(GetParam()));
  std::map<uint64_t, uint64_t> model;  // key, size
  std::map<std::string, std::string> names;
  constexpr uint64_t kBudget = uint64_t{4} << 20;
  scene::HeapOpener opener(std::get<1>(GetParam()), kBudget);
  uint64_t next = 1;
  for (int cycle = 0; cycle < 6; ++cycle) {
    PersistentHeap heap = take(cycle == 0 ? opener.create(path) : opener.open(path));
    Table& table = *take(heap.find_or_construct<Table>("table"));
    ASSERT_EQ(table.size(), model.size());
    const bool is_shrinking = cycle % 3 == 2;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 10 < (is_shrinking ? 3u : 7u) || model.empty()) {
        const uint64_t key = next++, size = random_size(random);
        const Entry entry{static_cast<std::byte*>(take(heap.allocate(size))), size};
        fill(entry.bytes.get(), key, size);
        table[key] = entry;
        model[key] = size;
      } else {
        auto victim = model.lower_bound(random() % next);
        if (victim == model.end()) victim = model.begin();
        const auto found = table.find(victim->first);
        ASSERT_NE(found, table.end());
        ASSERT_EQ(found->second.size, victim->second);
        ASSERT_TRUE(is_filled(found->second.bytes.get(), victim->first, victim->second));
        heap.deallocate(found->second.bytes.get());
        table.erase(found);
        model.erase(victim);
      }
      if (random() % 100 == 0) {
        const std::string name = "n" + std::to_string(random() % 30);
        if (names.erase(name) != 0) {
          EXPECT_OK(heap.destroy<persistent::string>(name));
        } else {
          names[name] = std::string(random() % 200, 'n');
          take(heap.construct<persistent::string>(name, names[name].c_str()));
        }
      }
      if (random() % 2000 == 0) {
        EXPECT_OK(heap.flush());
      }
    }
    for (const auto& [key, size] : model)
      ASSERT_TRUE(is_filled(table.at(key).bytes.get(), key, size)) << key;
    for (const auto& [name, text] : names)
      ASSERT_EQ(*take(heap.find<persistent::string>(name)), text.c_str());
    EXPECT_EQ(heap.info().objects.size(), names.size() + 1);
    EXPECT_OK(heap.close());
    const std::vector<std::string> findings = take(persistent_heap_check(path));
    ASSERT_TRUE(findings.empty()) << findings[0];
  }
  if (Runtime* const runtime = opener.runtime(); runtime != nullptr) {
    EXPECT_LE(runtime->metrics().gauges.used_bytes_max, kBudget);
  }
  EXPECT_GT(std::filesystem::file_size(path), 2 * kBudget);
}

INSTANTIATE_TEST_SUITE_P(Seeds, PersistentModel,
                         testing::Combine(testing::Values(1, 2, 3), scene::kEveryPaging));

using ThreadsAndPaging = std::tuple<unsigned, HeapPaging>;
class PersistentThreads : public testing::TestWithParam<ThreadsAndPaging> {};

TEST_P(PersistentThreads, AllocateAndFreeAtTheSameTime) {
  const Folder folder;
  const std::string path = folder / "heap";
  const unsigned threads = std::get<0>(GetParam());
  scene::HeapOpener opener(std::get<1>(GetParam()));
  for (int round = 0; round < 2; ++round) {
    PersistentHeap heap = take(round == 0 ? opener.create(path) : opener.open(path));
    // What one makes the next frees, and so on round.
    std::vector<std::deque<Entry>> handed(threads);
    std::vector<std::mutex> locks(threads);
    std::atomic<uint64_t> wrong{0};
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, t] {
        std::mt19937_64 random(t + 10 * static_cast<unsigned>(round));
        std::vector<Entry> mine;
        for (unsigned step = 0; step < std::min(3000U, 8000 / threads); ++step) {
          const uint64_t size = random_size(random);
          const Result<void*> made = heap.allocate(size);
          if (!made) {
            ++wrong;
            return;
          }
          mine.push_back({static_cast<std::byte*>(made.value()), size});
          fill(mine.back().bytes.get(), size, size);
          const size_t at = random() % mine.size();
          if (random() % 3 == 0) {
            const std::lock_guard<std::mutex> guard(locks[(t + 1) % threads]);
            handed[(t + 1) % threads].push_back(mine[at]);
            mine[at] = mine.back();
            mine.pop_back();
          }
          Entry gone;
          if (random() % 2 == 0) {
            const std::lock_guard<std::mutex> guard(locks[t]);
            if (handed[t].empty()) continue;
            gone = handed[t].front();
            handed[t].pop_front();
          } else if (!mine.empty()) {
            gone = mine.back();
            mine.pop_back();
          }
          if (gone.bytes == nullptr) continue;
          if (!is_filled(gone.bytes.get(), gone.size, gone.size)) ++wrong;
          heap.deallocate(gone.bytes.get());
        }
        for (const Entry& entry : mine) {
          if (!is_filled(entry.bytes.get(), entry.size, entry.size)) ++wrong;
          heap.deallocate(entry.bytes.get());
        }
      });
    for (std::thread& thread : all) thread.join();
    EXPECT_EQ(wrong, 0u);
    for (auto& queue : handed)
      for (const Entry& entry : queue) {
        ASSERT_TRUE(is_filled(entry.bytes.get(), entry.size, entry.size));
        heap.deallocate(entry.bytes.get());
      }
    EXPECT_OK(heap.close());
    ASSERT_TRUE(take(persistent_heap_check(path)).empty());
    EXPECT_EQ(take(persistent_heap_info(path)).in_use_bytes, 0u);
  }
}

TEST_P(PersistentThreads, MakeObjectsAtTheSameTime) {
  const Folder folder;
  scene::HeapOpener opener(std::get<1>(GetParam()));
  PersistentHeap heap = take(opener.create(folder / "heap"));
  std::atomic<int> made{0};
  std::vector<std::thread> all;
  for (unsigned t = 0; t < std::get<0>(GetParam()); ++t)
    all.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (heap.construct<int>(std::to_string(i), i).ok()) ++made;
        EXPECT_EQ(*take(heap.find_or_construct<int>(std::to_string(i), -1)), i);
      }
    });
  for (std::thread& thread : all) thread.join();
  EXPECT_EQ(made, 200);
}

// A thread that outlives a heap has nothing of it any more.
class PersistentThread : public testing::TestWithParam<HeapPaging> {};

TEST_P(PersistentThread, MayOutliveTheHeap) {
  const Folder folder;
  scene::HeapOpener opener(GetParam());
  std::atomic<int> turn{0};
  std::optional<PersistentHeap> heap = take(opener.create(folder / "a"));
  std::thread other([&] {
    take(heap->allocate(100));
    turn = 1;
    turn.notify_all();
    turn.wait(1);
    take(heap->allocate(100));  // of another heap, perhaps at the same address
  });
  turn.wait(0);
  heap = take(opener.create(folder / "b"));
  turn = 2;
  turn.notify_all();
  other.join();
  EXPECT_EQ(heap->info().in_use_bytes, 112u);
  EXPECT_OK(heap->close());
  EXPECT_EQ(take(persistent_heap_info(folder / "a")).in_use_bytes, 112u);
}

INSTANTIATE_TEST_SUITE_P(Counts, PersistentThreads,
                         testing::Combine(testing::Values(1, 2, 4, 8), scene::kEveryPaging));

INSTANTIATE_TEST_SUITE_P(Pagings, PersistentThread, scene::kEveryPaging, scene::name_of_paging);

}  // namespace
}  // namespace outcore
